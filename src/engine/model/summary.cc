// Figures of a checkpoint, from its config and its files.
#include "engine/model/summary.h"

#include <algorithm>
#include <cmath>

#include "base/text/text.h"

namespace assay::engine {
namespace {

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kGeluErf:
      return "gelu";
    case Activation::kRelu:
      return "relu";
    case Activation::kSilu:
      return "silu";
  }
  return "";
}

void add_positions(const ModelConfig& config, Json& facts) {
  facts["max_positions"] = config.max_positions;
  facts["positions"] = config.learned_positions ? "learned" : "rope";
  if (config.learned_positions) return;
  facts["rope_theta"] = config.rope_theta;
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind == RopeScalingKind::kNone) return;
  if (scaling.kind == RopeScalingKind::kFactors) {
    facts["rope_scaling"] = "factors";
    return;
  }
  const bool llama3 = scaling.kind == RopeScalingKind::kLlama3;
  facts["rope_scaling"] = llama3 ? "llama3" : "linear";
  facts["rope_scaling_factor"] = scaling.factor;
  if (!llama3) return;
  facts["rope_low_freq_factor"] = scaling.low_freq_factor;
  facts["rope_high_freq_factor"] = scaling.high_freq_factor;
  facts["rope_original_max_positions"] = scaling.original_max_positions;
}

Json biases(const ModelConfig& config) {
  Json names = Json::array();
  if (config.qkv_bias) names.push_back("qkv");
  if (config.attention_out_bias) names.push_back("attention_out");
  if (config.mlp_bias) names.push_back("mlp");
  return names;
}

Result<Json> file_sizes(const Checkpoint& checkpoint) {
  Json files = Json::array();
  for (const auto& path : checkpoint.weight_files()) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(path, error);
    if (error) {
      return bad_input("{}: expected a file, found: {}", path.string(), error.message());
    }
    files.push_back({{"name", path.filename().string()}, {"bytes", size}});
  }
  return files;
}

uint64_t bytes_of(const TensorSpec& spec) {
  return TensorView(nullptr, spec.format, spec.shape).size_bytes();
}

double bits_per_weight(uint64_t bytes, uint64_t weights) {
  const double bits = 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  return std::round(bits * 1000) / 1000;
}

std::string_view class_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("norm") || has(".ln_")) return "norms";
  if (has("lm_head")) return "head";
  if (has("embed_tokens") || has(".wte.") || has(".wpe.")) return "embeddings";
  return has("attn") ? "attention" : "mlp";
}

// A class and a format each, in the order in which the model first has them.
Json tensor_classes(const std::vector<TensorSpec>& specs) {
  struct Part {
    std::string_view name;
    WeightFormat format;
    uint64_t weights = 0, bytes = 0;
  };
  std::vector<Part> parts;
  for (const TensorSpec& spec : specs) {
    const std::string_view name = class_of(spec.name);
    auto part = std::ranges::find_if(
        parts, [&](const Part& one) { return one.name == name && one.format == spec.format; });
    if (part == parts.end()) part = parts.insert(parts.end(), {name, spec.format});
    part->weights += static_cast<uint64_t>(spec.shape.elements());
    part->bytes += bytes_of(spec);
  }
  Json list = Json::array();
  for (const Part& part : parts) {
    list.push_back({{"class", part.name},
                    {"format", traits(part.format).name},
                    {"parameters", part.weights},
                    {"bytes", part.bytes},
                    {"bits_per_weight", bits_per_weight(part.bytes, part.weights)}});
  }
  return list;
}

// A fact as a person reads it: lists joined, byte counts with their unit beside.
std::string shown(const std::string& name, const Json& value) {
  if (name == "files") {
    std::vector<std::string> parts;
    for (const Json& file : value) {
      parts.push_back(fmt::format("{} ({})", file["name"].get<std::string>(),
                                  format_bytes(file["bytes"].get<double>())));
    }
    return join(parts, ", ");
  }
  if (name == "tensors") {
    std::vector<std::string> parts;
    for (const Json& part : value) {
      parts.push_back(fmt::format("{} {} {} ({:.4g} bits)", part["class"].get<std::string>(),
                                  part["format"].get<std::string>(),
                                  format_bytes(part["bytes"].get<double>()),
                                  part["bits_per_weight"].get<double>()));
    }
    return join(parts, ", ");
  }
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const Json& part : value) {
      parts.push_back(part.is_string() ? part.get<std::string>() : to_json_line(part));
    }
    return parts.empty() ? "none" : join(parts, ", ");
  }
  if (value.is_string()) return value.get<std::string>();
  if (name.ends_with("_bytes") || name.ends_with("_bytes_per_position")) {
    return fmt::format("{} ({})", to_json_line(value), format_bytes(value.get<double>()));
  }
  return to_json_line(value);
}

}  // namespace

uint64_t kv_bytes_per_position(const ModelConfig& config, DType dtype) {
  return static_cast<uint64_t>(2 * config.layers * config.kv_heads * config.head_dim) *
         dtype_size_bytes(dtype);
}

uint64_t decode_weight_bytes(const ModelConfig& config, const std::vector<TensorSpec>& tensors,
                             int64_t batch) {
  uint64_t bytes = 0;
  for (const TensorSpec& spec : tensors) {
    const bool table = spec.name.ends_with("wpe.weight") ||
                       (!config.tied_embeddings && (spec.name.ends_with("wte.weight") ||
                                                    spec.name.ends_with("embed_tokens.weight")));
    const uint64_t all = bytes_of(spec);
    const auto rows = static_cast<uint64_t>(spec.shape[0]);
    bytes += table ? all / rows * std::min(static_cast<uint64_t>(batch), rows) : all;
  }
  return bytes;
}

Result<Json> summarize(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  Json facts = {
      {"architecture", architecture_name(config.architecture)},
      {"parameters", checkpoint.parameter_count()},
      {"dtype", dtype_name(config.dtype)},
      {"weight_bytes", checkpoint.weight_bytes()},
      {"bits_per_weight", bits_per_weight(checkpoint.weight_bytes(), checkpoint.parameter_count())},
      {"tensors", tensor_classes(checkpoint.tensors())},
      {"fp32_bytes", checkpoint.parameter_count() * 4},
      {"half_bytes", checkpoint.parameter_count() * 2},
      {"kv_bytes_per_position", kv_bytes_per_position(config, config.dtype)},
      {"decode_step_weight_bytes", decode_weight_bytes(config, checkpoint.tensors(), 1)},
      {"layers", config.layers},
      {"hidden_size", config.hidden_size},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"intermediate_size", config.intermediate_size},
      {"vocab_size", config.vocab_size}};
  facts["norm"] = config.norm == NormKind::kLayerNorm ? "layer_norm" : "rms_norm";
  facts["norm_eps"] = config.norm_eps;
  facts["activation"] = activation_name(config.activation);
  facts["gated_mlp"] = config.gated_mlp;
  facts["biases"] = biases(config);
  facts["tied_embeddings"] = config.tied_embeddings;
  add_positions(config, facts);
  if (config.bos_token_id) facts["bos_token_id"] = *config.bos_token_id;
  facts["eos_token_ids"] = config.eos_token_ids;
  ASSAY_TRY(facts["files"], file_sizes(checkpoint));
  return facts;
}

Table summary_table(const Json& summary) {
  Table table;
  table.columns = columns_of("<property|<value");
  for (const auto& [name, value] : summary.items()) {
    TableCell cell{value, shown(name, value)};
    if (value.is_array()) cell.value = cell.text;  // CSV: no JSON inside a field
    table.rows.push_back({name, std::move(cell)});
  }
  return table;
}

}  // namespace assay::engine
