// Maps a folder's weight files and takes their tensors as views.
#include "engine/model/safetensors_checkpoint.h"

#include <algorithm>

#include "base/records/json.h"
#include "engine/model/quantized_tensors.h"
#include "engine/model/safetensors.h"
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

Status check_index(std::string_view object, const std::vector<SafetensorsEntry>& entries,
                   const WeightMap& weight_map) {
  const std::string shard = fs::path(object).filename().string();
  size_t expected = 0;
  for (const auto& [name, file] : weight_map) expected += file == shard ? 1 : 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto it = weight_map.find(entry.name);
    if (it == weight_map.end() || it->second != shard) {
      return bad_input("{}: expected the tensors that the index names, found {} beside them",
                       object, json_quoted(entry.name));
    }
    --expected;  // names within a file are unique, so each counts once
  }
  if (expected == 0) return {};
  for (const auto& [name, file] : weight_map) {
    if (file != shard) continue;
    const bool found = std::ranges::any_of(entries, [&](const auto& e) { return e.name == name; });
    if (found) continue;
    return bad_input("{}: expected tensor {}, as the index says, found none of this name", object,
                     json_quoted(name));
  }
  return {};
}

// The tensors of files as they come.
struct Reading {
  CheckpointFiles files;
  StoredTensors parts;  // of quantised weights

  Status add_tensor(std::string_view object, const SafetensorsEntry& entry,
                    std::span<const std::byte> bytes) {
    const std::string name = full_name(entry.name, files.config.architecture);
    if (is_leftover(name, files.config)) return {};
    const auto twice = [&] {
      return bad_input("{}: expected each tensor once, found {} again", object,
                       json_quoted(entry.name));
    };
    if (files.config.quantization && is_part_of_weight(name, entry.dtype)) {
      StoredTensor part{entry.dtype, entry.dims, bytes.data() + entry.begin};
      if (!parts.emplace(name, std::move(part)).second) return twice();
      return {};
    }
    const auto dtype = safetensors_float_dtype(entry.dtype);
    if (!dtype) {
      return bad_input("{}: expected F32, F16 or BF16 for tensor {}, found {}", object,
                       json_quoted(entry.name), entry.dtype);
    }
    if (!files.tensors.empty() && files.tensors.begin()->second.element() != *dtype) {
      return bad_input("{}: expected one type for all tensors, found {} of {} beside {}", object,
                       json_quoted(entry.name), dtype_name(*dtype),
                       dtype_name(files.tensors.begin()->second.element()));
    }
    if (entry.dims.size() > Shape::kMaxRank) {
      return bad_input("{}: expected at most {} dimensions for tensor {}, found {}", object,
                       Shape::kMaxRank, json_quoted(entry.name), entry.dims.size());
    }
    const TensorView view = files.aligned({bytes.data() + entry.begin, *dtype, Shape(entry.dims)});
    if (!files.tensors.emplace(name, view).second) return twice();
    return {};
  }

  Status add_bytes(std::string_view object, std::span<const std::byte> bytes,
                   const WeightMap* weight_map = nullptr) {
    ASSAY_TRY(const auto entries, parse_safetensors_header(bytes, bytes.size(), object));
    if (weight_map) ASSAY_CHECK(check_index(object, entries, *weight_map));
    for (const SafetensorsEntry& entry : entries) ASSAY_CHECK(add_tensor(object, entry, bytes));
    return {};
  }

  Status add_file(const fs::path& path, const WeightMap* weight_map) {
    ASSAY_TRY(MappedFile map, MappedFile::open(path));
    ASSAY_CHECK(add_bytes(path.string(), map.bytes(), weight_map));
    files.weight_files.push_back(path);
    files.maps.push_back(std::move(map));
    return {};
  }

  Result<CheckpointFiles> finish(std::string_view object) {
    if (!files.tensors.empty()) files.config.dtype = files.tensors.begin()->second.element();
    if (files.config.quantization) ASSAY_CHECK(add_quantized(parts, object, files));
    return std::move(files);
  }
};

}  // namespace

Result<CheckpointFiles> read_safetensors_checkpoint(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return bad_input("{}: expected a checkpoint folder, found none", folder.string());
  }
  Reading reading;
  reading.files.config_file = folder / "config.json";
  if (const auto now = file_stamp(reading.files.config_file)) {
    reading.files.config_stamp = *now;
  }
  ASSAY_TRY(reading.files.config, read_model_config(folder));
  ASSAY_TRY(const WeightFiles found, find_weight_files(folder));
  for (const fs::path& path : found.paths) {
    ASSAY_CHECK(reading.add_file(path, found.weight_map ? &*found.weight_map : nullptr));
  }
  return reading.finish(folder.string());
}

Result<CheckpointFiles> read_safetensors_bytes(ModelConfig config, std::span<const std::byte> bytes,
                                               std::string_view object) {
  Reading reading;
  reading.files.config = std::move(config);
  ASSAY_CHECK(reading.add_bytes(object, bytes));
  return reading.finish(object);
}

}  // namespace assay::engine
