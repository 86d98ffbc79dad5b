// Opens a checkpoint by the reader that it needs, and compares its tensors with those that the
// config asks for.
#include "engine/model/checkpoint.h"

#include <cassert>
#include <cstring>

#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/records/json.h"
#include "engine/model/gguf_checkpoint.h"
#include "engine/model/safetensors_checkpoint.h"

namespace assay::engine {

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  ASSAY_TRY(CheckpointFiles files,
            is_file ? read_gguf_checkpoint(path) : read_safetensors_checkpoint(path));
  return of(path, std::move(files));
}

Result<Checkpoint> Checkpoint::of(const std::filesystem::path& path, CheckpointFiles files) {
  Checkpoint checkpoint(path, std::move(files));
  ASSAY_CHECK(checkpoint.check_against_config());
  return checkpoint;
}

TensorView CheckpointFiles::aligned(const TensorView& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  if (view.in_blocks() || address % dtype_size_bytes(view.element()) == 0) return view;
  copies.push_back(std::make_unique<std::byte[]>(view.size_bytes()));
  std::memcpy(copies.back().get(), view.data, view.size_bytes());
  return {copies.back().get(), view.format, view.shape};
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
      return bad_input("{}: expected shape {} for tensor \"{}\" by its config, found {}",
                       path_.string(), spec.shape.to_string(), spec.name,
                       it->second.shape.to_string());
    }
  }
  if (files_.tensors.size() != specs.size()) {
    std::map<std::string, TensorView> rest = files_.tensors;
    for (const TensorSpec& spec : specs) rest.erase(spec.name);
    return bad_input("{}: expected the {} tensors of its config, found {} beside them",
                     path_.string(), specs.size(), json_quoted(rest.begin()->first));
  }
  return {};
}

const TensorView& Checkpoint::tensor(const std::string& name) const {
  const auto it = files_.tensors.find(name);
  assert(it != files_.tensors.end());
  return it->second;
}

int64_t Checkpoint::interleaved_heads(const std::string& name) const {
  const auto found = files_.interleaved.find(name);
  return found == files_.interleaved.end() ? 0 : found->second;
}

const RowReader* Checkpoint::repacked(const std::string& name) const {
  const auto found = files_.repacked.find(name);
  return found == files_.repacked.end() ? nullptr : &found->second;
}

void Checkpoint::decode_row(const std::string& name, int64_t row, float* out) const {
  const TensorView& view = tensor(name);
  const RowReader* const reader = repacked(name);
  if (reader == nullptr) return engine::decode_row(view, row, out);
  TensorView one(nullptr, view.format, Shape{1, view.row_values()});
  std::vector<std::byte> bytes(one.size_bytes());
  (*reader)(row, 1, bytes.data());
  one.data = bytes.data();
  one.input_order = view.input_order;
  engine::decode_row(one, 0, out);
}

std::vector<TensorSpec> Checkpoint::tensors() const {
  std::vector<TensorSpec> specs = tensor_specs(config());
  for (TensorSpec& spec : specs) {
    spec.format = tensor(spec.name).format;
    spec.input_order = tensor(spec.name).input_order;
  }
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

void Checkpoint::drop_pages() const {
  for (const MappedFile& map : files_.maps) map.drop_pages();
}

std::optional<std::string> Checkpoint::identity() const {
  if (files_.maps.empty()) return std::nullopt;
  std::string text;
  const auto add = [&](const std::filesystem::path& path, const FileStamp& opened) {
    const auto now = file_stamp(path);
    std::error_code error;
    text += fmt::format("{} {}\n", std::filesystem::absolute(path, error).string(), opened.text());
    return now && *now == opened && !error;
  };
  if (!files_.config_file.empty() && !add(files_.config_file, files_.config_stamp))
    return std::nullopt;
  for (size_t i = 0; i < files_.maps.size(); ++i) {
    if (!add(files_.weight_files[i], files_.maps[i].stamp())) return std::nullopt;
  }
  return text;
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
