// Opens a checkpoint by the reader that it needs, and compares its tensors with those that the
// config asks for.
#include "engine/model/checkpoint.h"

#include <cassert>

#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/records/json.h"
#include "engine/model/safetensors_checkpoint.h"

namespace assay::engine {

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  ASSAY_TRY(CheckpointFiles files, read_safetensors_checkpoint(path));
  Checkpoint checkpoint(path, std::move(files));
  ASSAY_CHECK(checkpoint.check_against_config());
  return checkpoint;
}

Status Checkpoint::check_against_config() const {
  const std::vector<TensorSpec> specs = tensor_specs(config());
  for (const TensorSpec& spec : specs) {
    const auto it = files_.tensors.find(spec.name);
    if (it == files_.tensors.end()) {
      return bad_input("{}: expected tensor \"{}\" of shape {}, found none of this name",
                       path_.string(), spec.name, spec.shape.to_string());
    }
    if (it->second.shape != spec.shape) {
      return bad_input("{}: expected shape {} for tensor \"{}\" by config.json, found {}",
                       path_.string(), spec.shape.to_string(), spec.name,
                       it->second.shape.to_string());
    }
  }
  if (files_.tensors.size() != specs.size()) {
    std::map<std::string, TensorView> rest = files_.tensors;
    for (const TensorSpec& spec : specs) rest.erase(spec.name);
    return bad_input("{}: expected the {} tensors of its config.json, found {} beside them",
                     path_.string(), specs.size(), json_quoted(rest.begin()->first));
  }
  return {};
}

const TensorView& Checkpoint::tensor(const std::string& name) const {
  const auto it = files_.tensors.find(name);
  assert(it != files_.tensors.end());
  return it->second;
}

std::vector<TensorSpec> Checkpoint::tensors() const {
  std::vector<TensorSpec> specs = tensor_specs(config());
  for (TensorSpec& spec : specs) spec.format = tensor(spec.name).format;
  return specs;
}

uint64_t Checkpoint::weight_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, view] : files_.tensors) total += view.size_bytes();
  return total;
}

uint64_t Checkpoint::parameter_count() const {
  uint64_t total = 0;
  for (const auto& [name, view] : files_.tensors) {
    total += static_cast<uint64_t>(view.shape.elements());
  }
  return total;
}

Result<std::string> Checkpoint::content_hash() const {
  Sha256 hash;
  if (!files_.config_file.empty()) {
    ASSAY_TRY(const std::string config, read_file(files_.config_file));
    hash.update(config);
  }
  for (const MappedFile& map : files_.maps) hash.update(map.bytes());
  return hash.finish_hex();
}

}  // namespace assay::engine
