// The table of named models. Figures of the published ones are from their config.json on the
// Hugging Face hub.
#include "engine/model/architectures.h"

#include "base/text/text.h"

namespace assay::engine {
namespace {

Json gpt2_config(int64_t width, int64_t layers, int64_t heads, int64_t vocab, int64_t positions) {
  return {{"architectures", Json::array({"GPT2LMHeadModel"})},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"attn_pdrop", 0.1},
          {"embd_pdrop", 0.1},
          {"initializer_range", 0.02},
          {"layer_norm_epsilon", 1e-5},
          {"n_ctx", positions},
          {"n_embd", width},
          {"n_head", heads},
          {"n_inner", nullptr},
          {"n_layer", layers},
          {"n_positions", positions},
          {"resid_pdrop", 0.1},
          {"tie_word_embeddings", true},
          {"use_cache", true},
          {"vocab_size", vocab}};
}

// The sizes in which the rotary families differ from model to model.
struct Sizes {
  int64_t width, intermediate, layers, heads, kv_heads, vocab, positions;
  bool tied;
};

Json rotary_config(const char* model_class, const char* type, const Sizes& sizes, double eps,
                   double theta) {
  return {{"architectures", Json::array({model_class})},
          {"model_type", type},
          {"attention_dropout", 0.0},
          {"hidden_act", "silu"},
          {"hidden_size", sizes.width},
          {"initializer_range", 0.02},
          {"intermediate_size", sizes.intermediate},
          {"max_position_embeddings", sizes.positions},
          {"num_attention_heads", sizes.heads},
          {"num_hidden_layers", sizes.layers},
          {"num_key_value_heads", sizes.kv_heads},
          {"rms_norm_eps", eps},
          {"rope_theta", theta},
          {"tie_word_embeddings", sizes.tied},
          {"use_cache", true},
          {"vocab_size", sizes.vocab}};
}

Json qwen2_config(const Sizes& sizes) {
  Json config = rotary_config("Qwen2ForCausalLM", "qwen2", sizes, 1e-6, 1'000'000.0);
  config["max_window_layers"] = sizes.layers;
  config["sliding_window"] = sizes.positions;
  config["use_sliding_window"] = false;
  return config;
}

Json llama2_config(const Sizes& sizes) {
  Json config = rotary_config("LlamaForCausalLM", "llama", sizes, 1e-5, 10'000.0);
  config["attention_bias"] = false;
  config["mlp_bias"] = false;
  config["pretraining_tp"] = 1;
  config["rope_scaling"] = nullptr;
  return config;
}

Json llama3_config(const Sizes& sizes, int64_t head_dim, double factor,
                   int64_t original_positions) {
  Json config = llama2_config(sizes);
  config["head_dim"] = head_dim;
  config["rope_theta"] = 500'000.0;
  config["rope_scaling"] = {{"factor", factor},
                            {"high_freq_factor", 4.0},
                            {"low_freq_factor", 1.0},
                            {"original_max_position_embeddings", original_positions},
                            {"rope_type", "llama3"}};
  return config;
}

std::vector<NamedArchitecture> all_architectures() {
  constexpr auto kGpt2 = TokenizerStyle::kGpt2;
  constexpr auto kLlama3 = TokenizerStyle::kLlama3;
  constexpr auto kQwen2 = TokenizerStyle::kQwen2;
  constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;
  // Sizes: width, intermediate, layers, heads, kv_heads, vocab, positions, tied.
  return {
      {"tiny-gpt2", kF32, kGpt2, gpt2_config(64, 2, 4, 512, 512)},
      {"tiny-llama", kF32, kLlama3,
       llama3_config({64, 192, 2, 4, 2, 512, 1024, false}, 32, 8.0, 128)},
      {"tiny-qwen2", kF32, kQwen2, qwen2_config({64, 192, 2, 4, 2, 512, 1024, true})},
      {"gpt2-25m", kF32, kGpt2, gpt2_config(384, 3, 6, 50257, 1024)},
      {"gpt2-50m", kF32, kGpt2, gpt2_config(512, 8, 8, 50257, 1024)},
      {"gpt2-100m", kF32, kGpt2, gpt2_config(768, 9, 12, 50257, 1024)},
      {"qwen2.5-0.5b", kBF16, kQwen2, qwen2_config({896, 4864, 24, 14, 2, 151936, 32768, true})},
      {"qwen2.5-1.5b", kBF16, kQwen2, qwen2_config({1536, 8960, 28, 12, 2, 151936, 131072, true})},
      {"qwen2.5-3b", kBF16, kQwen2, qwen2_config({2048, 11008, 36, 16, 2, 151936, 32768, true})},
      {"qwen2.5-7b", kBF16, kQwen2, qwen2_config({3584, 18944, 28, 28, 4, 152064, 131072, false})},
      {"llama3.2-1b", kBF16, kLlama3,
       llama3_config({2048, 8192, 16, 32, 8, 128256, 131072, true}, 64, 32.0, 8192)},
      {"llama3.2-3b", kBF16, kLlama3,
       llama3_config({3072, 8192, 28, 24, 8, 128256, 131072, true}, 128, 32.0, 8192)},
      {"llama3.1-8b", kBF16, kLlama3,
       llama3_config({4096, 14336, 32, 32, 8, 128256, 131072, false}, 128, 8.0, 8192)},
      {"llama2-7b", kF16, kLlama3, llama2_config({4096, 11008, 32, 32, 32, 32000, 4096, false})},
      {"te-8-layers", kBF16, kLlama3,
       llama2_config({2048, 5504, 8, 16, 16, 32000, 4096, false})},  // studies/te-hybrid.yaml
  };
}

Json token_ids(const NamedArchitecture& architecture) {
  const SpecialTokenIds ids =
      special_token_ids(architecture.config["vocab_size"].get<int64_t>(), architecture.tokenizer);
  return {{"bos_token_id", ids.bos ? Json(*ids.bos) : Json()}, {"eos_token_id", ids.eos}};
}

std::string_view torch_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kI32:
      return "int32";
  }
  return "";
}

}  // namespace

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const NamedArchitecture& architecture : all_architectures()) {
    names.push_back(architecture.name);
  }
  return names;
}

Result<NamedArchitecture> find_architecture(std::string_view name) {
  for (NamedArchitecture& architecture : all_architectures()) {
    if (architecture.name == name) return std::move(architecture);
  }
  const std::vector<std::string> names = architecture_names();
  return bad_input("architecture: expected one of {}, found {}{}", join(names, ", "),
                   json_quoted(name), nearest_hint(name, names));
}

Json make_config_json(const NamedArchitecture& architecture, DType dtype) {
  Json config = architecture.config;
  config.update(token_ids(architecture));
  config["torch_dtype"] = torch_dtype_name(dtype);
  return config;
}

Json make_generation_config_json(const NamedArchitecture& architecture) {
  Json config = {{"_from_model_config", true}};
  config.update(token_ids(architecture));
  return config;
}

}  // namespace assay::engine
