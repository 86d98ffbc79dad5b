// Weights of quantised safetensors, which lie in several tensors each, as tensors in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// One tensor of a file, whose bytes fit its shape and may lie at any address.
struct StoredTensor {
  std::string dtype;  // as written: "I32", "F8_E4M3"
  std::vector<int64_t> dims;
  const std::byte* data = nullptr;
};
using StoredTensors = std::map<std::string, StoredTensor>;  // by the engine's names

// True for a tensor that is a part of a quantised weight, by its name or its type.
bool is_part_of_weight(std::string_view name, std::string_view dtype);

// Takes the parts of each weight that files.config.quantization says is converted, and adds it to
// files.tensors and files.repacked: without loss, apart from 4-bit weights' scales of fp32, which
// lose 8 bits. A zero bias that the model doesn't have is dropped, as GPTQ's writers add such.
// bad_input: a part is missing, left over, or of another type, shape or content than the others ask
// for; a weight is converted that the config lists as kept, or the other way round. `object` names
// the checkpoint.
Status add_quantized(const StoredTensors& parts, std::string_view object, CheckpointFiles& files);

}  // namespace assay::engine
