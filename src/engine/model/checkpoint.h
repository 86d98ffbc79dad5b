// A checkpoint opened for reading: validated config, and weights mapped from its files, whichever
// reader they need.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "engine/model/config.h"
#include "engine/weight_format.h"

namespace assay::engine {

// One tensor that a checkpoint of this config must hold, by its Hugging Face name.
struct TensorSpec {
  std::string
      name;  // "model.layers.0.self_attn.q_proj.weight", "transformer.h.0.attn.c_attn.weight"
  Shape shape;
  WeightFormat format = WeightFormat::kF32;
  const int32_t* input_order = nullptr;  // TensorView::input_order
};

// All tensors of the config, in the order in which `assay model make` writes them, each in the
// config's dtype. The single source of names and shapes: readers are validated against it, the
// maker writes it, the graph builders refer to it. Tied embeddings have no lm_head.weight.
std::vector<TensorSpec> tensor_specs(const ModelConfig& config);

// Writes rows [first, first + count) of a tensor to `rows`, in its format, behind one another. From
// any thread.
using RowReader = std::function<void(int64_t first, int64_t count, std::byte* rows)>;

// The files of a checkpoint as a reader maps them: all that differs between their formats.
struct CheckpointFiles {
  ModelConfig config;                               // its dtype apart, where tensors say it
  std::vector<std::filesystem::path> weight_files;  // in name order, `maps` beside them
  std::vector<MappedFile> maps;
  std::vector<std::unique_ptr<std::byte[]>> copies;  // of tensors that lie unaligned in their file
  std::map<std::string, TensorView> tensors;         // into maps or copies, by the engine's names
  // Weights and biases whose output rows lie in the order of llama.cpp's RoPE, with their heads: of
  // a head the rows 2 i and 2 i + 1 are the engine's i and head_dim / 2 + i.
  std::map<std::string, int64_t> interleaved;
  // The name of its mix of blocks, where the file states one: "Q4_K - Medium".
  std::string quantization;
  // Tensors whose bytes the file has in another form: without data, made row by row.
  std::map<std::string, RowReader> repacked;
  std::deque<std::vector<int32_t>> input_orders;  // that tensors point to

  // The view, or a copy's where its elements lie unaligned.
  TensorView aligned(const TensorView& view);
  // A file that describes the model beside the weight files; empty: these do.
  std::filesystem::path config_file;
  FileStamp config_stamp;  // before it was read
};

class Checkpoint {
 public:
  // A folder of safetensors (safetensors_checkpoint.h), or a GGUF file (gguf_checkpoint.h). Every
  // spec must be present with its shape, and nothing unexpected beside it.
  static Result<Checkpoint> open(const std::filesystem::path& path);
  // The same of files that a reader has read from `path`.
  static Result<Checkpoint> of(const std::filesystem::path& path, CheckpointFiles files);

  const ModelConfig& config() const { return files_.config; }
  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::filesystem::path>& weight_files() const { return files_.weight_files; }
  // The name must be one of tensor_specs(config()): assert. Valid as long as the checkpoint.
  const TensorView& tensor(const std::string& name) const;
  const std::string& quantization() const { return files_.quantization; }
  // CheckpointFiles::repacked; null: its data is the file's.
  const RowReader* repacked(const std::string& name) const;
  // Values of a row of any tensor, in the order of the inputs. From any thread.
  void decode_row(const std::string& name, int64_t row, float* out) const;
  // CheckpointFiles::interleaved; 0: its rows are in the engine's order.
  int64_t interleaved_heads(const std::string& name) const;
  std::vector<TensorSpec> tensors() const;  // tensor_specs(config()), each in its own format
  uint64_t weight_bytes() const;            // of all tensors
  uint64_t parameter_count() const;

  // Takes the weight files' bytes out of resident memory until somebody reads them again.
  void drop_pages() const;

  // Paths and stamps of all files when they were opened, a line each: as long as they stay so,
  // the same weights come of them. Absent for a checkpoint that has no file, and where one of them
  // has changed since.
  std::optional<std::string> identity() const;

  // SHA-256 over what describes the model beside the weights and every weight file's bytes in name
  // order. Reads everything once.
  Result<std::string> content_hash() const;

 private:
  Checkpoint(std::filesystem::path path, CheckpointFiles files)
      : path_(std::move(path)), files_(std::move(files)) {}
  Status check_against_config() const;

  std::filesystem::path path_;
  CheckpointFiles files_;
};

}  // namespace assay::engine
