// The reader of checkpoint folders: config.json, and weights in safetensors.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// Maps folder/model.safetensors, or the shards of folder/model.safetensors.index.json, whose
// tensors have one float type. Known leftovers, such as GPT-2's attn.bias masks, rotary inv_freq
// and a duplicate of a tied head, are left out.
Result<CheckpointFiles> read_safetensors_checkpoint(const std::filesystem::path& folder);

}  // namespace assay::engine
