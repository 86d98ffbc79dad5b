// A checkpoint folder opened for reading: validated config, and weights mapped from safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "engine/model/config.h"
#include "engine/model/safetensors.h"
#include "engine/tensor.h"

namespace assay::engine {

// One tensor that a checkpoint of this config must hold, by its Hugging Face name.
struct TensorSpec {
  std::string
      name;  // "model.layers.0.self_attn.q_proj.weight", "transformer.h.0.attn.c_attn.weight"
  Shape shape;
};

// All tensors of the config, in the order in which `assay model make` writes them. The single
// source of names and shapes: the loader validates against it, the maker writes it, the graph
// builders refer to it. Tied embeddings have no lm_head.weight.
std::vector<TensorSpec> tensor_specs(const ModelConfig& config);

class Checkpoint {
 public:
  // Maps folder/model.safetensors, or the shards of folder/model.safetensors.index.json. Every spec
  // must be present with its shape in one float dtype, and nothing unexpected beside it (known
  // leftovers such as GPT-2's attn.bias masks, rotary inv_freq and a duplicate of a tied head are
  // ignored).
  static Result<Checkpoint> open(const std::filesystem::path& folder);

  const ModelConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::filesystem::path>& weight_files() const { return weight_files_; }
  // The name must be one of tensor_specs(config()): assert. Valid as long as the checkpoint.
  const TensorView& tensor(const std::string& name) const;
  uint64_t weight_bytes() const;  // of all tensors
  uint64_t parameter_count() const;

  // SHA-256 over config.json and every weight file's bytes in name order. Reads everything once.
  Result<std::string> content_hash() const;

 private:
  // Adds a weight file's tensors; check_against_config() refuses those that the config doesn't ask
  // for.
  Status add_file(const std::filesystem::path& path,
                  const std::map<std::string, std::string>* weight_map);
  Status add_tensor(const std::filesystem::path& path, const SafetensorsEntry& entry,
                    std::span<const std::byte> bytes);
  Status check_against_config();

  std::filesystem::path folder_;
  ModelConfig config_;
  std::vector<std::filesystem::path> weight_files_;  // in name order, maps_ beside them
  std::vector<MappedFile> maps_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  // of tensors that lie unaligned in their file
  std::map<std::string, TensorView> tensors_;
};

}  // namespace assay::engine
