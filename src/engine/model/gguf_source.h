// A model's metadata and tensors as a GGUF file has them, read row by row: of a GGUF as they are
// there, of a checkpoint folder as llama.cpp's converter would write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model/gguf_writer.h"
#include "engine/weight_format.h"

namespace assay::engine {

struct GgufSourceTensor {
  std::string name;
  WeightFormat format = WeightFormat::kF32;  // as stored now
  std::vector<int64_t> dims;
  // Values of a row of the last dimension. From any thread.
  std::function<void(int64_t row, float* out)> read_row;
};

struct GgufSource {
  GgufHeader header;  // pairs, without those that say how weights are stored
  std::vector<GgufSourceTensor> tensors;
  int64_t layers = 0;
  std::function<void()> drop_pages;  // takes what was read out of resident memory
};

// A folder's tokenizer must be of a kind that has a name in GGUF (gpt-2, llama-bpe, qwen2, smollm);
// a folder without one gives a file without one. The result keeps what it reads open.
Result<GgufSource> open_gguf_source(const std::filesystem::path& model);

}  // namespace assay::engine
