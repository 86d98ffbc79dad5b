// The reader of checkpoint folders: config.json, and weights in safetensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// Maps folder/model.safetensors, or the shards of folder/model.safetensors.index.json, whose
// tensors have one float type, but for the weights that the config says are quantised
// (quantized_tensors.h). Known leftovers, such as GPT-2's attn.bias masks, rotary inv_freq
// and a duplicate of a tied head, are left out.
Result<CheckpointFiles> read_safetensors_checkpoint(const std::filesystem::path& folder);
// The same of one file's bytes, which must outlive the result; its files and maps are empty.
Result<CheckpointFiles> read_safetensors_bytes(ModelConfig config, std::span<const std::byte> bytes,
                                               std::string_view object);

}  // namespace assay::engine
