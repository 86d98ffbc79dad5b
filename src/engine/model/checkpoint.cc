// Opens a checkpoint: maps the weight files, and compares their tensors with those that the config
// asks for.
#include "engine/model/checkpoint.h"

#include <cassert>
#include <cstring>

#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/records/json.h"
#include "engine/model/weight_files.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

// Tensors that transformers leaves unread as well, by how their names end.
bool is_leftover(std::string_view name, const ModelConfig& config) {
  if (config.architecture == Architecture::kGpt2) {
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return true;
  } else if (name.ends_with(".rotary_emb.inv_freq")) {
    return true;
  }
  return config.tied_embeddings && name == "lm_head.weight";
}

// The name with the family's prefix, which checkpoints of the bare model lack.
std::string full_name(const std::string& name, Architecture architecture) {
  const std::string prefix = architecture == Architecture::kGpt2 ? "transformer." : "model.";
  return name.starts_with(prefix) || name.starts_with("lm_head.") ? name : prefix + name;
}

Status check_index(const fs::path& path, const std::vector<SafetensorsEntry>& entries,
                   const WeightMap& weight_map) {
  const std::string shard = path.filename().string();
  size_t expected = 0;
  for (const auto& [name, file] : weight_map) expected += file == shard ? 1 : 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto it = weight_map.find(entry.name);
    if (it == weight_map.end() || it->second != shard) {
      return bad_input("{}: expected the tensors that the index names, found {} beside them",
                       path.string(), json_quoted(entry.name));
    }
    --expected;  // names within a file are unique, so each counts once
  }
  if (expected == 0) return {};
  for (const auto& [name, file] : weight_map) {
    if (file != shard) continue;
    const bool found = std::ranges::any_of(entries, [&](const auto& e) { return e.name == name; });
    if (found) continue;
    return bad_input("{}: expected tensor {}, as the index says, found none of this name",
                     path.string(), json_quoted(name));
  }
  return {};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return bad_input("{}: expected a checkpoint folder, found none", folder.string());
  }
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  ASSAY_TRY(checkpoint.config_, read_model_config(folder));
  ASSAY_TRY(const WeightFiles files, find_weight_files(folder));
  for (const fs::path& path : files.paths) {
    ASSAY_CHECK(checkpoint.add_file(path, files.weight_map ? &*files.weight_map : nullptr));
  }
  ASSAY_CHECK(checkpoint.check_against_config());
  return checkpoint;
}

Status Checkpoint::add_file(const fs::path& path,
                            const std::map<std::string, std::string>* weight_map) {
  ASSAY_TRY(MappedFile map, MappedFile::open(path));
  const auto bytes = map.bytes();
  ASSAY_TRY(const auto entries, parse_safetensors_header(bytes, bytes.size(), path.string()));
  if (weight_map) ASSAY_CHECK(check_index(path, entries, *weight_map));
  for (const SafetensorsEntry& entry : entries) ASSAY_CHECK(add_tensor(path, entry, bytes));
  weight_files_.push_back(path);
  maps_.push_back(std::move(map));
  return {};
}

Status Checkpoint::add_tensor(const fs::path& path, const SafetensorsEntry& entry,
                              std::span<const std::byte> bytes) {
  const std::string name = full_name(entry.name, config_.architecture);
  if (is_leftover(name, config_)) return {};
  const auto dtype = safetensors_float_dtype(entry.dtype);
  if (!dtype) {
    return bad_input("{}: expected F32, F16 or BF16 for tensor {}, found {}", path.string(),
                     json_quoted(entry.name), entry.dtype);
  }
  if (!tensors_.empty() && tensors_.begin()->second.dtype != *dtype) {
    return bad_input("{}: expected one type for all tensors, found {} of {} beside {}",
                     path.string(), json_quoted(entry.name), dtype_name(*dtype),
                     dtype_name(tensors_.begin()->second.dtype));
  }
  if (entry.dims.size() > Shape::kMaxRank) {
    return bad_input("{}: expected at most {} dimensions for tensor {}, found {}", path.string(),
                     Shape::kMaxRank, json_quoted(entry.name), entry.dims.size());
  }
  TensorView view{bytes.data() + entry.begin, *dtype, Shape(entry.dims)};
  if (reinterpret_cast<uintptr_t>(view.data) % dtype_size_bytes(*dtype) != 0) {
    copies_.push_back(std::make_unique<std::byte[]>(view.size_bytes()));
    std::memcpy(copies_.back().get(), view.data, view.size_bytes());
    view.data = copies_.back().get();
  }
  if (!tensors_.emplace(name, view).second) {
    return bad_input("{}: expected each tensor once, found {} again", path.string(),
                     json_quoted(entry.name));
  }
  return {};
}

Status Checkpoint::check_against_config() {
  const std::vector<TensorSpec> specs = tensor_specs(config_);
  for (const TensorSpec& spec : specs) {
    const auto it = tensors_.find(spec.name);
    if (it == tensors_.end()) {
      return bad_input("{}: expected tensor \"{}\" of shape {}, found none of this name",
                       folder_.string(), spec.name, spec.shape.to_string());
    }
    if (it->second.shape != spec.shape) {
      return bad_input("{}: expected shape {} for tensor \"{}\" by config.json, found {}",
                       folder_.string(), spec.shape.to_string(), spec.name,
                       it->second.shape.to_string());
    }
  }
  if (tensors_.size() != specs.size()) {
    std::map<std::string, TensorView> rest = tensors_;
    for (const TensorSpec& spec : specs) rest.erase(spec.name);
    return bad_input("{}: expected the {} tensors of its config.json, found {} beside them",
                     folder_.string(), specs.size(), json_quoted(rest.begin()->first));
  }
  config_.dtype = tensors_.begin()->second.dtype;
  return {};
}

const TensorView& Checkpoint::tensor(const std::string& name) const {
  const auto it = tensors_.find(name);
  assert(it != tensors_.end());
  return it->second;
}

uint64_t Checkpoint::weight_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, view] : tensors_) total += view.size_bytes();
  return total;
}

uint64_t Checkpoint::parameter_count() const {
  return weight_bytes() / dtype_size_bytes(config_.dtype);
}

Result<std::string> Checkpoint::content_hash() const {
  ASSAY_TRY(const std::string config, read_file(folder_ / "config.json"));
  Sha256 hash;
  hash.update(config);
  for (const MappedFile& map : maps_) hash.update(map.bytes());
  return hash.finish_hex();
}

}  // namespace assay::engine
