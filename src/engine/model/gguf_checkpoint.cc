// GgufSettings to a config, by way of config.json's own reader; tensors to the engine's names.
#include "engine/model/gguf_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/records/json.h"
#include "base/text/text.h"
#include "engine/model/gguf.h"
#include "engine/model/gguf_names.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRopeFactors = "rope_freqs.weight";

// Keys of an architecture that this reader takes into account, without its prefix, and such that
// don't change what is computed.
constexpr std::array<std::string_view, 19> kKnownKeys = {
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "tensor_data_layout",
    "expert_count",
};

// Reads the metadata of one architecture into the members of a config.json.
class GgufSettings {
 public:
  GgufSettings(const Gguf& file, std::string architecture, std::string_view object)
      : file_(file), architecture_(std::move(architecture)), object_(object) {}

  Result<Json> config() const {
    ASSAY_CHECK(check_keys());
    const bool gpt2 = architecture_ == "gpt2";
    Json config = {{"model_type", architecture_}};
    const GgufTensor* table = tensor("token_embd.weight");
    if (table == nullptr || table->dims.size() != 2) {
      return bad_input("{}: expected tensor \"token_embd.weight\" of two dimensions, found none",
                       object_);
    }
    config["vocab_size"] = table->dims[0];
    ASSAY_CHECK(copy_whole("embedding_length", gpt2 ? "n_embd" : "hidden_size", config));
    ASSAY_CHECK(copy_whole("block_count", gpt2 ? "n_layer" : "num_hidden_layers", config));
    ASSAY_CHECK(
        copy_whole("context_length", gpt2 ? "n_positions" : "max_position_embeddings", config));
    ASSAY_CHECK(copy_whole("feed_forward_length", gpt2 ? "n_inner" : "intermediate_size", config));
    ASSAY_CHECK(
        copy_whole("attention.head_count", gpt2 ? "n_head" : "num_attention_heads", config));
    ASSAY_CHECK(
        copy_number(gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                    gpt2 ? "layer_norm_epsilon" : "rms_norm_eps", true, config));
    config["tie_word_embeddings"] = tensor("output.weight") == nullptr;
    ASSAY_CHECK(copy_ids(config));
    if (gpt2) {
      config["activation_function"] = "gelu_new";
      return config;
    }
    config["hidden_act"] = "silu";
    if (architecture_ == "llama") {
      config["attention_bias"] = tensor("blk.0.attn_q.bias") != nullptr;
      config["mlp_bias"] = tensor("blk.0.ffn_up.bias") != nullptr;
    }
    ASSAY_TRY(const auto kv_heads, whole("attention.head_count_kv"));
    config["num_key_value_heads"] = kv_heads ? Json(*kv_heads) : config["num_attention_heads"];
    ASSAY_CHECK(copy_rope(config));
    return config;
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  const GgufTensor* tensor(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors(), name, &GgufTensor::name);
    return found == file_.tensors().end() ? nullptr : &*found;
  }

  Status check_keys() const {
    const std::string prefix = architecture_ + ".";
    for (auto it = file_.metadata().lower_bound(prefix);
         it != file_.metadata().end() && it->first.starts_with(prefix); ++it) {
      const std::string_view name = std::string_view(it->first).substr(prefix.size());
      if (std::ranges::find(kKnownKeys, name) != kKnownKeys.end()) continue;
      return bad_input(
          "{}: expected settings that assay knows, found {}, which may change what is "
          "computed",
          object_, json_quoted(it->first));
    }
    ASSAY_TRY(const auto experts, whole("expert_count"));
    if (experts.value_or(0) != 0) {
      return bad_input("{}: expected a model without experts, found {} of them", object_, *experts);
    }
    return {};
  }

  // A whole number, or the one that all elements of an array are.
  Result<std::optional<int64_t>> whole(std::string_view name) const {
    const std::string full = key(name);
    const auto found = file_.metadata().find(full);
    if (found == file_.metadata().end() ||
        !std::holds_alternative<GgufArray>(found->second.value)) {
      return file_.whole(full);
    }
    ASSAY_TRY(const auto values, file_.wholes(full));
    if (!values || values->empty() ||
        std::ranges::adjacent_find(*values, std::ranges::not_equal_to()) != values->end()) {
      return bad_input("{}: expected one value at {} for all layers, found several", object_,
                       json_quoted(full));
    }
    return values->front();
  }

  std::unexpected<Error> missing(std::string_view name) const {
    return bad_input("{}: expected metadata {}, found none", object_, json_quoted(key(name)));
  }

  Status copy_whole(std::string_view name, const char* member, Json& config) const {
    ASSAY_TRY(const auto value, whole(name));
    if (!value) return missing(name);
    config[member] = *value;
    return {};
  }

  // Files have fp32: the shortest decimal that rounds to it is what the model's author wrote.
  Status copy_number(std::string_view name, const char* member, bool needed, Json& config) const {
    ASSAY_TRY(const auto value, file_.number(key(name)));
    if (!value && needed) return missing(name);
    if (!value) return {};
    const auto narrow = static_cast<float>(*value);
    config[member] = double{narrow} == *value ? std::stod(fmt::format("{}", narrow)) : *value;
    return {};
  }

  Status copy_ids(Json& config) const {
    ASSAY_TRY(const auto bos, file_.whole("tokenizer.ggml.bos_token_id"));
    config["bos_token_id"] = bos ? Json(*bos) : Json();
    Json ends = Json::array();
    for (const char* name : {"eos", "eot"}) {
      ASSAY_TRY(const auto id, file_.whole(fmt::format("tokenizer.ggml.{}_token_id", name)));
      if (id && std::ranges::find(ends, Json(*id)) == ends.end()) ends.push_back(*id);
    }
    config["eos_token_id"] = std::move(ends);
    return {};
  }

  Status copy_rope(Json& config) const {
    ASSAY_CHECK(copy_number("rope.freq_base", "rope_theta", false, config));
    if (!config.contains("rope_theta")) config["rope_theta"] = 10000.0;  // llama.cpp's default
    std::optional<int64_t> head_dim;
    for (const char* name :
         {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
      ASSAY_TRY(const auto value, whole(name));
      if (!value) continue;
      if (head_dim && *head_dim != *value) {
        return bad_input("{}: expected {} at {}, as for the other sizes of a head, found {}",
                         object_, *head_dim, json_quoted(key(name)), *value);
      }
      head_dim = value;
    }
    if (head_dim) config["head_dim"] = *head_dim;
    ASSAY_TRY(const auto scaling, file_.text(key("rope.scaling.type")));
    if (!scaling || *scaling == "none") return {};
    if (*scaling != "linear") {
      return bad_input("{}: expected rope scaling none or linear, found {}", object_,
                       json_quoted(*scaling));
    }
    Json linear = {{"rope_type", "linear"}};
    ASSAY_CHECK(copy_number("rope.scaling.factor", "factor", true, linear));
    config["rope_scaling"] = std::move(linear);
    return {};
  }

  const Gguf& file_;
  std::string architecture_;
  std::string_view object_;
};

Status add_rope_factors(const GgufTensor& tensor, const std::byte* data, std::string_view object,
                        ModelConfig& config) {
  const auto half = config.head_dim / 2;
  if (config.rope_scaling.kind != RopeScalingKind::kNone || config.learned_positions) {
    return bad_input("{}: expected no tensor \"{}\" beside other positions, found one", object,
                     kRopeFactors);
  }
  if (tensor.format != WeightFormat::kF32 || tensor.dims != std::vector<int64_t>{half}) {
    return bad_input("{}: expected tensor \"{}\" of fp32 [{}], found {} [{}]", object, kRopeFactors,
                     half, traits(tensor.format).name, fmt::join(tensor.dims, ", "));
  }
  config.rope_scaling.kind = RopeScalingKind::kFactors;
  for (int64_t i = 0; i < half; ++i) {
    float factor;
    std::memcpy(&factor, data + i * 4, sizeof factor);
    if (!(factor > 0) || factor > 1e9f) {
      return bad_input("{}: expected positive factors in \"{}\", found {}", object, kRopeFactors,
                       factor);
    }
    config.rope_scaling.factors.push_back(factor);
  }
  return {};
}

Status add_tensor(const GgufTensor& tensor, std::span<const std::byte> bytes,
                  std::string_view object, CheckpointFiles& files) {
  ModelConfig& config = files.config;
  const std::byte* data = bytes.data() + tensor.begin;
  if (tensor.name == kRopeFactors) return add_rope_factors(tensor, data, object, config);
  const std::string name = engine_name(tensor.name, config.architecture);
  if (name.empty()) {
    return bad_input("{}: expected tensors that assay knows, found {}", object,
                     json_quoted(tensor.name));
  }
  if (tensor.dims.size() < 2 && traits(tensor.format).in_blocks()) {
    return bad_input("{}: expected fp32, fp16 or bf16 for tensor {} of one dimension, found {}",
                     object, json_quoted(tensor.name), traits(tensor.format).name);
  }
  const TensorView view(data, tensor.format, Shape(tensor.dims));
  files.tensors.emplace(name, files.aligned(view));
  if (config.architecture != Architecture::kLlama) return {};
  if (name.find(".q_proj.") != std::string::npos) files.interleaved[name] = config.heads;
  if (name.find(".k_proj.") != std::string::npos) files.interleaved[name] = config.kv_heads;
  return {};
}

// The type of most of the values that are in no blocks.
DType element_type(const CheckpointFiles& files) {
  std::map<DType, int64_t> counts;
  for (const auto& [name, view] : files.tensors) {
    if (!view.in_blocks()) counts[view.element()] += view.shape.elements();
  }
  if (counts.empty()) return DType::kF32;
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
}

}  // namespace

Result<CheckpointFiles> read_gguf_bytes(std::span<const std::byte> bytes, std::string_view object) {
  CheckpointFiles files;
  ASSAY_TRY(const Gguf file, Gguf::parse(bytes, object));
  ASSAY_TRY(const auto architecture, file.text("general.architecture"));
  if (!architecture ||
      (*architecture != "llama" && *architecture != "qwen2" && *architecture != "gpt2")) {
    return bad_input("{}: expected llama, qwen2 or gpt2 at \"general.architecture\", found {}",
                     object, architecture ? json_quoted(*architecture) : "none");
  }
  ASSAY_TRY(const Json config, GgufSettings(file, *architecture, object).config());
  ASSAY_TRY(files.config, parse_model_config(config, object));
  files.config.linear_layout =
      WeightLayout::kOutIn;  // GPT-2's are transposed when they are written
  for (const GgufTensor& tensor : file.tensors()) {
    ASSAY_CHECK(add_tensor(tensor, bytes, object, files));
  }
  files.config.dtype = element_type(files);
  ASSAY_TRY(const auto file_type, file.whole("general.file_type"));
  files.quantization = mix_name(file_type.value_or(-1));
  return files;
}

Result<CheckpointFiles> read_gguf_checkpoint(const fs::path& path) {
  ASSAY_TRY(MappedFile map, MappedFile::open(path));
  ASSAY_TRY(CheckpointFiles files, read_gguf_bytes(map.bytes(), path.string()));
  files.weight_files.push_back(path);
  files.maps.push_back(std::move(map));
  return files;
}

}  // namespace assay::engine
