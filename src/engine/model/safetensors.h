// The safetensors format: a length, a JSON header, and the tensors' bytes one after the other.
//   https://huggingface.co/docs/safetensors (format section) and the reference reader's validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/tensor.h"

namespace assay::engine {

// One tensor of a file. The header may hold types that the engine can't compute with (masks,
// indices); who uses the tensor decides.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;          // as written: "F32", "BF16", "I64", "F8_E4M3", ...
  std::vector<int64_t> dims;  // all >= 0; their product with the type's size equals end - begin
  uint64_t begin = 0;         // bytes from the start of the file
  uint64_t end = 0;           // <= the file's size
};

// The element type of "F32", "F16" and "BF16"; absent for any other.
std::optional<DType> safetensors_float_dtype(std::string_view name);
std::string_view safetensors_dtype_name(DType dtype);  // "F32" for kF32

// Reads and validates the header at the start of `bytes`: the length within the file and the
// format's limit, strict JSON, no name twice, known types, sizes that match shapes without
// overflow, and data ranges that cover the rest of the file without overlap or hole. Entries come
// in order of their data. `bytes` may be the whole file or any start of it that holds the header;
// file_size is the file's. `object` names the file in errors.
Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                               uint64_t file_size,
                                                               std::string_view object);

// A header as parse_safetensors_header reads it, with its length in front, padded with spaces so
// that the data starts at a multiple of 64 bytes. The entries' begin and end are ignored: the data
// follows in order, without holes.
std::string make_safetensors_header(std::span<const SafetensorsEntry> entries);

}  // namespace assay::engine
