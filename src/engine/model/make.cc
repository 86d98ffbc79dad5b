// Writes a random checkpoint: plans the shards, streams each tensor in chunks, then the small
// files.
#include "engine/model/make.h"

#include <algorithm>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/records/json.h"
#include "base/text/text.h"
#include "engine/model/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/new_checkpoint.h"
#include "engine/model/random_weights.h"
#include "engine/model/safetensors.h"
#include "engine/model/weight_files.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChunkElements = 1024 * kFillBlock;

// A tensor with the source of its bytes.
struct PlannedTensor {
  TensorSpec spec;
  WeightFill fill;
};

struct Shard {
  std::string file;
  std::vector<PlannedTensor> tensors;
};

uint64_t tensor_bytes(const TensorSpec& spec, DType dtype) {
  return static_cast<uint64_t>(spec.shape.elements()) * dtype_size_bytes(dtype);
}

// Tensors in their order, a new shard where the next one would not fit; named as transformers does.
std::vector<Shard> plan_shards(const ModelConfig& config, const MakeOptions& options) {
  std::vector<Shard> shards(1);
  uint64_t used = 0;
  size_t index = 0;
  for (TensorSpec& spec : tensor_specs(config)) {
    const uint64_t size = tensor_bytes(spec, config.dtype);
    if (used > 0 && used + size > options.shard_bytes) {
      shards.emplace_back();
      used = 0;
    }
    used += size;
    const WeightFill fill = weight_fill(spec, index++, config.architecture, options.seed);
    shards.back().tensors.push_back({std::move(spec), fill});
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = shards.size() == 1
                         ? std::string(kSingleFile)
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

class Writer : public NewCheckpoint {
 public:
  using NewCheckpoint::NewCheckpoint;
  Status write_shard(const Shard& shard, DType dtype);

 private:
  Status write_tensor(AppendFile& file, const PlannedTensor& tensor, DType dtype);

  ThreadPool pool_{available_cpus()};
  std::vector<std::byte> chunk_;
};

Status Writer::write_shard(const Shard& shard, DType dtype) {
  std::vector<SafetensorsEntry> entries;
  for (const PlannedTensor& tensor : shard.tensors) {
    SafetensorsEntry entry{tensor.spec.name, std::string(safetensors_dtype_name(dtype)), {}, 0, 0};
    for (size_t i = 0; i < tensor.spec.shape.rank(); ++i) {
      entry.dims.push_back(tensor.spec.shape[i]);
    }
    entries.push_back(std::move(entry));
  }
  ASSAY_TRY(const auto file, open_file(shard.file));
  ASSAY_CHECK(file->append(make_safetensors_header(entries)));
  for (const PlannedTensor& tensor : shard.tensors) {
    ASSAY_CHECK(write_tensor(*file, tensor, dtype));
  }
  return file->sync();
}

Status Writer::write_tensor(AppendFile& file, const PlannedTensor& tensor, DType dtype) {
  const auto total = static_cast<uint64_t>(tensor.spec.shape.elements());
  const size_t element_bytes = dtype_size_bytes(dtype);
  for (uint64_t begin = 0; begin < total; begin += kChunkElements) {
    const uint64_t count = std::min(kChunkElements, total - begin);
    chunk_.resize(std::max(chunk_.size(), static_cast<size_t>(count * element_bytes)));
    fill_weights(tensor.fill, begin, count, dtype, chunk_.data(), pool_);
    const auto* bytes = reinterpret_cast<const char*>(chunk_.data());
    ASSAY_CHECK(file.append({bytes, static_cast<size_t>(count * element_bytes)}));
  }
  return {};
}

std::string index_text(const std::vector<Shard>& shards, uint64_t total_bytes) {
  Json index = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", Json::object()}};
  for (const Shard& shard : shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      index["weight_map"][tensor.spec.name] = shard.file;
    }
  }
  return to_json_text(index);
}

}  // namespace

Result<MadeCheckpoint> make_checkpoint(std::string_view name, const fs::path& folder,
                                       const MakeOptions& options, FileSystem& files) {
  ASSAY_TRY(const NamedArchitecture architecture, find_architecture(name));
  const Json config_json =
      make_config_json(architecture, options.dtype.value_or(architecture.dtype));
  ASSAY_TRY(const ModelConfig config, parse_model_config(config_json, name));
  const std::vector<Shard> shards = plan_shards(config, options);

  MadeCheckpoint made{.dtype = config.dtype, .weight_files = shards.size()};
  for (const Shard& shard : shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      made.parameters += static_cast<uint64_t>(tensor.spec.shape.elements());
    }
  }
  made.weight_bytes = made.parameters * dtype_size_bytes(config.dtype);

  Writer writer(files, folder);
  ASSAY_CHECK(writer.open_folder());
  ASSAY_CHECK(writer.check_space(made.weight_bytes));
  for (const Shard& shard : shards) ASSAY_CHECK(writer.write_shard(shard, config.dtype));
  if (shards.size() > 1) {
    ASSAY_CHECK(writer.write_small(kIndexFile, index_text(shards, made.weight_bytes)));
  }
  ASSAY_CHECK(writer.write_small("tokenizer.json",
                                 make_tokenizer_json(config.vocab_size, architecture.tokenizer)));
  ASSAY_CHECK(writer.write_small("generation_config.json",
                                 to_json_text(make_generation_config_json(architecture))));
  ASSAY_CHECK(writer.write_small("config.json", to_json_text(config_json)));
  writer.keep();
  return made;
}

}  // namespace assay::engine
