// GGUF files, version 3: metadata and tensors of one model in one file, as llama.cpp writes them.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "engine/weight_format.h"

namespace assay::engine {

// Types of metadata, by their numbers in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// Integers of all widths are 64 bits wide here, unless their array is asked for by bytes.
using GgufScalar = std::variant<uint64_t, int64_t, double, bool, std::string_view>;
struct GgufArray {
  GgufType type = GgufType::kU8;  // of an element; never an array
  uint64_t count = 0;
  std::span<const std::byte> bytes;       // of elements of a fixed size
  std::vector<std::string_view> strings;  // of strings
};
struct GgufValue {
  std::variant<GgufScalar, GgufArray> value;
  std::span<const std::byte> stored;  // its type and itself, as the file has them
};

struct GgufTensor {
  std::string name;
  WeightFormat format = WeightFormat::kF32;
  std::vector<int64_t> dims;    // as the engine orders them: the last one is contiguous
  uint64_t begin = 0, end = 0;  // bytes of the file
};

// Views refer to the bytes that were parsed.
class Gguf {
 public:
  // Every count, offset, dimension, type and string is held against the size of the file before it
  // is used. `object` names the file in errors, each a bad_input of one line.
  static Result<Gguf> parse(std::span<const std::byte> bytes, std::string_view object);

  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the file's order
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }

  bool has(std::string_view key) const { return metadata_.contains(key); }
  // A value under this key; absent if there is none; bad_input if it is of another type. Whole
  // numbers may have any width and sign that holds them.
  Result<std::optional<int64_t>> whole(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  Result<std::optional<std::string>> text(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const;
  Result<std::optional<std::vector<float>>> floats(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> wholes(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;
  std::unexpected<Error> wrong(std::string_view key, std::string_view expected) const;

  std::string object_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
};

struct GgufFile {
  MappedFile map;
  Gguf gguf;  // with views of the map
};
Result<GgufFile> open_gguf(const std::filesystem::path& path);

}  // namespace assay::engine
