// config.json: one reader a family, strict about every member that changes the computation and
// silent about the rest.
#include "engine/model/config.h"
#include "engine/model/same_model.h"

#include <cmath>
#include <numbers>

#include "base/files/files.h"

namespace assay::engine {
namespace {

// Bounds that no real model nears and within which no product of sizes overflows 64 bits.
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxWidth = int64_t{1} << 20;  // hidden size, and heads times head_dim
constexpr int64_t kMaxIntermediate = int64_t{1} << 24;
constexpr int64_t kMaxLayers = int64_t{1} << 12;
constexpr int64_t kMaxPositions = int64_t{1} << 28;
constexpr size_t kMaxFileBytes = size_t{1} << 20;

// Typed access to one object of the file; `name` is how errors call it.
class Fields {
 public:
  Fields(const Json& json, std::string name) : json_(json), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  // The member, or null where it is absent or JSON's null.
  const Json* find(std::string_view key) const {
    const auto it = json_.find(std::string(key));
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  bool has_key(std::string_view key) const { return json_.contains(std::string(key)); }

  Result<int64_t> size(std::string_view key, int64_t limit) const {
    ASSAY_TRY(const int64_t value, json_int(json_, key, name_));
    if (value < 1 || value > limit) {
      return bad_input("{}: expected 1 to {} at \"{}\", found {}", name_, limit, key, value);
    }
    return value;
  }
  Result<int64_t> size_or(std::string_view key, int64_t fallback, int64_t limit) const {
    return find(key) ? size(key, limit) : fallback;
  }
  // Finite and above zero.
  Result<double> positive(std::string_view key) const {
    ASSAY_TRY(const double value, json_number(json_, key, name_));
    if (!std::isfinite(value) || value <= 0) {
      return bad_input("{}: expected a positive number at \"{}\", found {}", name_, key, value);
    }
    return value;
  }
  Result<double> positive_or(std::string_view key, double fallback) const {
    return find(key) ? positive(key) : fallback;
  }
  Result<bool> flag(std::string_view key, bool fallback) const {
    return json_bool_or(json_, key, fallback, name_);
  }
  Result<std::string> text(std::string_view key, std::string fallback) const {
    return json_string_or(json_, key, std::move(fallback), name_);
  }
  // A switch that this engine has in one position only.
  Status require_flag(std::string_view key, bool supported) const {
    ASSAY_TRY(const bool value, flag(key, supported));
    if (value == supported) return {};
    return bad_input("{}: expected {} at \"{}\", the only setting supported, found {}", name_,
                     supported, key, value);
  }

 private:
  const Json& json_;
  std::string name_;
};

Result<Activation> parse_activation(const Fields& fields, std::string_view key,
                                    std::string fallback) {
  ASSAY_TRY(const std::string name, fields.text(key, std::move(fallback)));
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_python_tanh" ||
      name == "gelu_fast" || name == "gelu_accurate") {
    return Activation::kGeluTanh;  // one formula in several spellings
  }
  if (name == "gelu" || name == "gelu_python") return Activation::kGeluErf;
  if (name == "relu") return Activation::kRelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  return bad_input(
      "{}: expected gelu_new, gelu_pytorch_tanh, gelu, relu or silu at \"{}\", found {}",
      fields.name(), key, json_quoted(name));
}

// One id, or absent; negative ids are how some configs say "none".
std::optional<int64_t> valid_id(int64_t id) {
  return id >= 0 ? std::optional(id) : std::nullopt;
}

Result<std::vector<int64_t>> parse_ids(const Fields& fields, std::string_view key,
                                       std::optional<int64_t> fallback) {
  std::vector<int64_t> ids;
  if (!fields.has_key(key)) {
    if (fallback) ids.push_back(*fallback);
    return ids;
  }
  const Json* value = fields.find(key);
  if (!value) return ids;  // null: the model has none
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& element : list) {
    const bool too_large = element.is_number_unsigned() && element.get<uint64_t>() > INT64_MAX;
    if (!element.is_number_integer() || too_large) {
      return bad_input("{}: expected a token id or a list of them at \"{}\", found {}",
                       fields.name(), key, to_json_line(*value).substr(0, 80));
    }
    if (const auto id = valid_id(element.get<int64_t>())) ids.push_back(*id);
  }
  return ids;
}

// Reads the members common to transformers' families. Null if a config has no such member.
Status read_common(const Fields& fields, std::optional<int64_t> default_bos,
                   std::optional<int64_t> default_eos, ModelConfig& config) {
  if (fields.find("compression_config")) {
    return bad_input("{}: expected weights that aren't compressed, found \"compression_config\"",
                     fields.name());
  }
  if (const Json* quantization = fields.find("quantization_config")) {
    ASSAY_TRY(config.quantization,
              parse_quantization_config(*quantization, fields.name() + " \"quantization_config\""));
  }
  ASSAY_CHECK(fields.require_flag("is_encoder_decoder", false));
  ASSAY_CHECK(fields.require_flag("add_cross_attention", false));
  ASSAY_TRY(config.vocab_size, fields.size("vocab_size", kMaxVocab));
  ASSAY_TRY(const auto bos, parse_ids(fields, "bos_token_id", default_bos));
  if (!bos.empty()) config.bos_token_id = bos.front();
  ASSAY_TRY(config.eos_token_ids, parse_ids(fields, "eos_token_id", default_eos));

  const char* key = fields.find("dtype") ? "dtype" : "torch_dtype";
  ASSAY_TRY(std::string dtype_text, fields.text(key, "float32"));
  const std::string_view bare =
      dtype_text.starts_with("torch.") ? std::string_view(dtype_text).substr(6) : dtype_text;
  const auto dtype = parse_dtype(bare);
  if (!dtype) {
    return bad_input("{}: expected float32, float16 or bfloat16 at \"{}\", found {}", fields.name(),
                     key, json_quoted(dtype_text));
  }
  config.dtype = *dtype;
  return {};
}

Status read_eps(const Fields& fields, std::string_view key, double fallback, ModelConfig& config) {
  ASSAY_TRY(config.norm_eps, fields.positive_or(key, fallback));
  if (config.norm_eps < 1) return {};
  return bad_input("{}: expected a number between 0 and 1 at \"{}\", found {}", fields.name(), key,
                   config.norm_eps);
}

Status check_divides(const Fields& fields, std::string_view small_key, int64_t small,
                     std::string_view large_key, int64_t large) {
  if (large % small == 0) return {};
  return bad_input("{}: expected \"{}\" to be a multiple of \"{}\", found {} and {}", fields.name(),
                   large_key, small_key, large, small);
}

Result<ModelConfig> parse_gpt2(const Fields& fields) {
  ModelConfig config;
  config.architecture = Architecture::kGpt2;
  config.linear_layout = WeightLayout::kInOut;
  ASSAY_CHECK(read_common(fields, 50256, 50256, config));
  ASSAY_CHECK(fields.require_flag("scale_attn_weights", true));
  ASSAY_CHECK(fields.require_flag("scale_attn_by_inverse_layer_idx", false));
  // transformers reads its general names here too, where GPT-2's own are absent.
  const auto key = [&](const char* own, const char* general) {
    return fields.find(own) || !fields.find(general) ? own : general;
  };
  ASSAY_TRY(config.hidden_size, fields.size(key("n_embd", "hidden_size"), kMaxWidth));
  ASSAY_TRY(config.layers, fields.size(key("n_layer", "num_hidden_layers"), kMaxLayers));
  const char* heads_key = key("n_head", "num_attention_heads");
  ASSAY_TRY(config.heads, fields.size(heads_key, kMaxWidth));
  ASSAY_TRY(config.max_positions,
            fields.size(key("n_positions", "max_position_embeddings"), kMaxPositions));
  ASSAY_CHECK(check_divides(fields, heads_key, config.heads, key("n_embd", "hidden_size"),
                            config.hidden_size));
  ASSAY_TRY(config.intermediate_size,
            fields.size_or("n_inner", 4 * config.hidden_size, kMaxIntermediate));
  config.kv_heads = config.heads;
  config.head_dim = config.hidden_size / config.heads;
  config.norm = NormKind::kLayerNorm;
  ASSAY_CHECK(read_eps(fields, "layer_norm_epsilon", 1e-5, config));
  ASSAY_TRY(config.activation, parse_activation(fields, "activation_function", "gelu_new"));
  config.gated_mlp = false;
  ASSAY_TRY(config.tied_embeddings, fields.flag("tie_word_embeddings", true));
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  config.learned_positions = true;
  return config;
}

// Only full attention over every position is computed here.
Status check_full_attention(const Fields& fields, int64_t layers) {
  if (const Json* types = fields.find("layer_types")) {
    const Json list = types->is_array() ? *types : Json::array({*types});
    for (const Json& type : list) {
      if (type != "full_attention") {
        return bad_input("{}: expected \"full_attention\" everywhere in \"layer_types\", found {}",
                         fields.name(), to_json_line(type).substr(0, 80));
      }
    }
    return {};
  }
  ASSAY_TRY(const bool sliding, fields.flag("use_sliding_window", false));
  ASSAY_TRY(const int64_t full_layers, fields.size_or("max_window_layers", 28, INT64_MAX));
  const bool has_window = !fields.has_key("sliding_window") || fields.find("sliding_window");
  if (!sliding || !has_window || full_layers >= layers) return {};
  return bad_input(
      "{}: expected false at \"use_sliding_window\", the only setting supported, found true",
      fields.name());
}

Status check_partial_rotary(const Fields& fields) {
  ASSAY_TRY(const double factor, fields.positive_or("partial_rotary_factor", 1));
  if (factor == 1) return {};
  return bad_input(
      "{}: expected 1 at \"partial_rotary_factor\", the only setting supported, found {}",
      fields.name(), factor);
}

// llama3's three factors and the positions of its pretraining.
Status read_llama3(const Fields& fields, const Fields& rope, int64_t max_positions,
                   RopeScaling& scaling) {
  ASSAY_TRY(scaling.low_freq_factor, rope.positive("low_freq_factor"));
  ASSAY_TRY(scaling.high_freq_factor, rope.positive("high_freq_factor"));
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    return bad_input("{}: expected \"high_freq_factor\" above \"low_freq_factor\", found {} and {}",
                     rope.name(), scaling.high_freq_factor, scaling.low_freq_factor);
  }
  const char* key = "original_max_position_embeddings";
  const Fields& holder = fields.find(key) ? fields : rope;  // transformers prefers the outer one
  ASSAY_TRY(scaling.original_max_positions, holder.size_or(key, max_positions, kMaxPositions));
  return {};
}

// `rope_scaling` (with `rope_theta` beside it), or `rope_parameters` that holds both; the first
// wins.
Status read_rope(const Fields& fields, ModelConfig& config) {
  ASSAY_CHECK(check_partial_rotary(fields));
  ASSAY_TRY(config.rope_theta, fields.positive_or("rope_theta", 10000));
  const Json* scaling = fields.find("rope_scaling");
  const bool old_form = scaling && !scaling->empty();
  const Json* member = old_form ? scaling : fields.find("rope_parameters");
  if (!member) return {};
  const std::string name =
      fields.name() + (old_form ? " \"rope_scaling\"" : " \"rope_parameters\"");
  if (!member->is_object()) {
    return bad_input("{}: expected an object, found {}", name, to_json_line(*member).substr(0, 80));
  }
  const Fields rope(*member, name);
  ASSAY_CHECK(check_partial_rotary(rope));
  ASSAY_TRY(config.rope_theta, rope.positive_or("rope_theta", config.rope_theta));
  const char* type_key = rope.find("rope_type") ? "rope_type" : "type";
  ASSAY_TRY(const std::string type, rope.text(type_key, "default"));
  if (type == "default") return {};
  if (type == "linear") {
    config.rope_scaling.kind = RopeScalingKind::kLinear;
  } else if (type == "llama3") {
    config.rope_scaling.kind = RopeScalingKind::kLlama3;
    ASSAY_CHECK(read_llama3(fields, rope, config.max_positions, config.rope_scaling));
  } else {
    return bad_input("{}: expected default, linear or llama3 at \"{}\", found {}", name, type_key,
                     json_quoted(type));
  }
  ASSAY_TRY(config.rope_scaling.factor, rope.positive("factor"));
  return {};
}

Status read_heads(const Fields& fields, ModelConfig& config) {
  ASSAY_TRY(config.heads, fields.size("num_attention_heads", kMaxWidth));
  // Absent means one for each query head in Llama; Qwen2's own default fits one model only.
  const bool derived =
      config.architecture == Architecture::kLlama || fields.has_key("num_key_value_heads");
  ASSAY_TRY(config.kv_heads, derived
                                 ? fields.size_or("num_key_value_heads", config.heads, kMaxWidth)
                                 : fields.size("num_key_value_heads", kMaxWidth));
  ASSAY_CHECK(check_divides(fields, "num_key_value_heads", config.kv_heads, "num_attention_heads",
                            config.heads));
  if (!fields.find("head_dim")) {
    ASSAY_CHECK(check_divides(fields, "num_attention_heads", config.heads, "hidden_size",
                              config.hidden_size));
  }
  ASSAY_TRY(config.head_dim, fields.size_or("head_dim", config.hidden_size / config.heads,
                                            kMaxWidth / config.heads));
  if (config.head_dim % 2 != 0) {
    return bad_input("{}: expected an even head_dim for rotary positions, found {}", fields.name(),
                     config.head_dim);
  }
  return {};
}

// Llama and Qwen2 differ in where the biases are and in their defaults.
Result<ModelConfig> parse_llama_family(const Fields& fields, Architecture architecture) {
  ModelConfig config;
  config.architecture = architecture;
  const bool llama = architecture == Architecture::kLlama;
  ASSAY_CHECK(read_common(fields, llama ? std::optional<int64_t>(1) : std::nullopt,
                          llama ? std::optional<int64_t>(2) : std::nullopt, config));
  ASSAY_TRY(config.hidden_size, fields.size("hidden_size", kMaxWidth));
  ASSAY_TRY(config.layers, fields.size("num_hidden_layers", kMaxLayers));
  ASSAY_CHECK(read_heads(fields, config));
  ASSAY_TRY(config.intermediate_size, fields.size("intermediate_size", kMaxIntermediate));
  ASSAY_TRY(config.max_positions, fields.size("max_position_embeddings", kMaxPositions));
  ASSAY_CHECK(read_eps(fields, "rms_norm_eps", 1e-6, config));
  ASSAY_TRY(config.activation, parse_activation(fields, "hidden_act", "silu"));
  ASSAY_TRY(config.tied_embeddings, fields.flag("tie_word_embeddings", false));
  config.qkv_bias = true;  // Qwen2 has these three always and no others
  if (llama) {
    ASSAY_TRY(config.qkv_bias, fields.flag("attention_bias", false));
    config.attention_out_bias = config.qkv_bias;
    ASSAY_TRY(config.mlp_bias, fields.flag("mlp_bias", false));
  }
  ASSAY_CHECK(check_full_attention(fields, config.layers));
  ASSAY_CHECK(read_rope(fields, config));
  return config;
}

// transformers' _compute_llama3_parameters for one frequency.
double llama3_frequency(double frequency, const RopeScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_max_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth = (original / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

Result<ModelConfig> parse_model_config(const Json& json, std::string_view object) {
  if (!json.is_object()) {
    return bad_input("{}: expected a JSON object, found {}", object, json.type_name());
  }
  const Fields fields(json, std::string(object));
  ASSAY_TRY(const std::string type, json_string(json, "model_type", object));
  if (type == "gpt2") return parse_gpt2(fields);
  if (type == "llama") return parse_llama_family(fields, Architecture::kLlama);
  if (type == "qwen2") return parse_llama_family(fields, Architecture::kQwen2);
  return bad_input(
      "{}: expected an architecture that assay knows (gpt2, llama, qwen2) at "
      "\"model_type\", found {}",
      object, json_quoted(type));
}

Result<ModelConfig> read_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  ASSAY_TRY(const std::string text, read_file(path, kMaxFileBytes));
  ASSAY_TRY(const Json json, parse_json(text, path.string()));
  return parse_model_config(json, path.string());
}

uint64_t prompt_operations(const ModelConfig& c, int64_t batch, int64_t positions,
                           int64_t logits_of) {
  const int64_t attended = c.heads * c.head_dim;
  const int64_t of_attention = c.hidden_size * (2 * attended + 2 * c.kv_heads * c.head_dim);
  const int64_t of_mlp = (c.gated_mlp ? 3 : 2) * c.hidden_size * c.intermediate_size;
  const int64_t weights = c.layers * (of_attention + of_mlp);
  const int64_t scores = c.layers * attended * positions * (positions + 1);  // and values: 2 / 2
  const int64_t multiplications =
      weights * positions + scores + logits_of * c.hidden_size * c.vocab_size;
  return static_cast<uint64_t>(2 * batch * multiplications);
}

Status check_same_model(const ModelConfig& model, const ModelConfig& other,
                        std::string_view object) {
  if (model.architecture != other.architecture) {
    return bad_input("{}: expected a {} as the model is, found a {}", object,
                     architecture_name(model.architecture), architecture_name(other.architecture));
  }
  for (const auto& [name, size] : {std::pair{"vocab_size", &ModelConfig::vocab_size},
                                   {"hidden_size", &ModelConfig::hidden_size},
                                   {"layers", &ModelConfig::layers},
                                   {"heads", &ModelConfig::heads},
                                   {"kv_heads", &ModelConfig::kv_heads},
                                   {"head_dim", &ModelConfig::head_dim},
                                   {"intermediate_size", &ModelConfig::intermediate_size}}) {
    if (model.*size == other.*size) continue;
    return bad_input("{}: expected the model's {} of {}, found {}", object, name, model.*size,
                     other.*size);
  }
  return {};
}

std::string_view architecture_name(Architecture architecture) {
  switch (architecture) {
    case Architecture::kGpt2:
      return "gpt2";
    case Architecture::kLlama:
      return "llama";
    case Architecture::kQwen2:
      return "qwen2";
  }
  return "";
}

std::vector<double> rope_inverse_frequencies(const ModelConfig& config) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < config.head_dim; i += 2) {
    const double exponent = static_cast<double>(i) / static_cast<double>(config.head_dim);
    double frequency = 1 / std::pow(config.rope_theta, exponent);
    const RopeScaling& scaling = config.rope_scaling;
    switch (scaling.kind) {
      case RopeScalingKind::kNone:
        break;
      case RopeScalingKind::kLinear:
        frequency /= scaling.factor;
        break;
      case RopeScalingKind::kLlama3:
        frequency = llama3_frequency(frequency, scaling);
        break;
      case RopeScalingKind::kFactors:
        frequency /= scaling.factors.at(static_cast<size_t>(i / 2));
        break;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace assay::engine
