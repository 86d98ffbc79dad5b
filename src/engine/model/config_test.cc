#include "engine/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12,
  "n_head": 12, "n_positions": 1024, "n_ctx": 1024, "n_inner": null, "attn_pdrop": 0.1, "task_specific_params": {}})";
constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
  "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "bos_token_id": 128000,
  "eos_token_id": [128001, 128008, 128009], "pretraining_tp": 1, "rope_scaling": {"factor": 32.0,
  "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
  "rope_type": "llama3"}})";
constexpr const char* kQwen2 = R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896,
  "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
  "num_key_value_heads": 2, "max_position_embeddings": 32768, "max_window_layers": 24,
  "rope_theta": 1000000.0, "sliding_window": 32768, "use_sliding_window": false,
  "tie_word_embeddings": true, "dtype": "bfloat16", "bos_token_id": 151643, "eos_token_id": 151643})";

// The config with one member set to another value, or removed where the value is "absent".
Result<ModelConfig> parse_with(const char* base, const std::string& key, const std::string& value) {
  Json json = parse_json(base, "test").value();
  if (value == "absent") {
    json.erase(key);
  } else if (!key.empty()) {
    json[key] = parse_json(value, "value").value();
  }
  return parse_model_config(json, "config.json");
}

Result<ModelConfig> parse(const char* base) {
  return parse_with(base, "", "null");
}

std::string error_with(const char* base, const std::string& key, const std::string& value) {
  const auto config = parse_with(base, key, value);
  if (config) return "no error";
  EXPECT_EQ(config.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  return config.error().message;
}

TEST(Config, Gpt2) {
  const ModelConfig config = parse(kGpt2).value();
  EXPECT_EQ(config.architecture, Architecture::kGpt2);
  EXPECT_EQ(config.hidden_size, 768);
  EXPECT_EQ(config.kv_heads, 12);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.intermediate_size, 3072);
  EXPECT_EQ(config.norm, NormKind::kLayerNorm);
  EXPECT_EQ(config.activation, Activation::kGeluTanh);
  EXPECT_FALSE(config.gated_mlp);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_TRUE(config.qkv_bias && config.attention_out_bias && config.mlp_bias);
  EXPECT_TRUE(config.learned_positions);
  EXPECT_EQ(config.dtype, DType::kF32);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.bos_token_id, 50256);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(50256));
}

TEST(Config, Gpt2OwnNamesAndGeneralOnes) {
  EXPECT_EQ(parse_with(kGpt2, "n_inner", "1000")->intermediate_size, 1000);
  EXPECT_EQ(parse_with(kGpt2, "tie_word_embeddings", "false")->tied_embeddings, false);
  Json json = parse_json(kGpt2, "test").value();
  json["num_attention_heads"] = 6;
  EXPECT_EQ(parse_model_config(json, "test")->heads, 12);
  json.erase("n_head");
  EXPECT_EQ(parse_model_config(json, "test")->heads, 6);
}

TEST(Config, Activations) {
  const auto of = [](const char* name) {
    return parse_with(kGpt2, "activation_function", name)->activation;
  };
  EXPECT_EQ(of("\"gelu\""), Activation::kGeluErf);
  EXPECT_EQ(of("\"gelu_new\""), Activation::kGeluTanh);
  EXPECT_EQ(of("\"gelu_pytorch_tanh\""), Activation::kGeluTanh);
  EXPECT_EQ(of("\"relu\""), Activation::kRelu);
  EXPECT_EQ(of("\"silu\""), Activation::kSilu);
  EXPECT_EQ(error_with(kGpt2, "activation_function", "\"tanh\""),
            "config.json: expected gelu_new, gelu_pytorch_tanh, gelu, relu or silu at "
            "\"activation_function\", found \"tanh\"");
}

TEST(Config, Llama) {
  const ModelConfig config = parse(kLlama).value();
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.kv_heads, 8);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.norm, NormKind::kRmsNorm);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_TRUE(config.gated_mlp);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_FALSE(config.qkv_bias || config.attention_out_bias || config.mlp_bias);
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_EQ(config.rope_scaling.kind, RopeScalingKind::kLlama3);
  EXPECT_EQ(config.rope_scaling.factor, 32);
  EXPECT_EQ(config.rope_scaling.original_max_positions, 8192);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(128001, 128008, 128009));
}

// Two layers of a width of 8: products of 2 heads and 1 KV head of 4, and three of 16.
TEST(Config, OperationsOfAPromptAreThoseOfItsProducts) {
  ModelConfig c;
  c.vocab_size = 100;
  c.hidden_size = 8;
  c.layers = 2;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_dim = 4;
  c.intermediate_size = 16;
  const uint64_t weights = 2 * (8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 16);
  const uint64_t attention = 2 * 2 * 2 * 4;  // layers, products, heads, elements
  EXPECT_EQ(prompt_operations(c, 1, 1), 2 * (weights + attention + 8 * 100));
  EXPECT_EQ(prompt_operations(c, 3, 5), 3 * 2 * (5 * weights + attention * 15 + 8 * 100));
  EXPECT_EQ(prompt_operations(c, 3, 5, 5), 3 * 2 * (5 * weights + attention * 15 + 5 * 8 * 100));
  c.gated_mlp = false;
  EXPECT_EQ(prompt_operations(c, 1, 1), 2 * (weights - 2 * 8 * 16 + attention + 8 * 100));
}

TEST(Config, LlamaDefaults) {
  EXPECT_EQ(parse_with(kLlama, "num_key_value_heads", "absent")->kv_heads, 32);
  EXPECT_EQ(parse_with(kLlama, "head_dim", "absent")->head_dim, 64);
  EXPECT_EQ(parse_with(kLlama, "head_dim", "null")->head_dim, 64);
  EXPECT_EQ(parse_with(kLlama, "head_dim", "128")->head_dim, 128);
  EXPECT_EQ(parse_with(kLlama, "tie_word_embeddings", "absent")->tied_embeddings, false);
  EXPECT_EQ(parse_with(kLlama, "rms_norm_eps", "absent")->norm_eps, 1e-6);
  EXPECT_EQ(parse_with(kLlama, "rope_scaling", "null")->rope_scaling.kind, RopeScalingKind::kNone);
  EXPECT_EQ(parse_with(kLlama, "rope_theta", "absent")->rope_theta, 10000);
  EXPECT_THAT(parse_with(kLlama, "eos_token_id", "absent")->eos_token_ids, ElementsAre(2));
  EXPECT_THAT(parse_with(kLlama, "eos_token_id", "null")->eos_token_ids, IsEmpty());
  EXPECT_THAT(parse_with(kLlama, "eos_token_id", "7")->eos_token_ids, ElementsAre(7));
}

TEST(Config, LlamaBiases) {
  const ModelConfig attention = parse_with(kLlama, "attention_bias", "true").value();
  EXPECT_TRUE(attention.qkv_bias && attention.attention_out_bias && !attention.mlp_bias);
  EXPECT_TRUE(parse_with(kLlama, "mlp_bias", "true")->mlp_bias);
}

TEST(Config, RopeParametersHoldThetaToo) {
  Json json = parse_json(kLlama, "test").value();
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = 250000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  const ModelConfig config = parse_model_config(json, "test").value();
  EXPECT_EQ(config.rope_theta, 250000);
  EXPECT_EQ(config.rope_scaling.kind, RopeScalingKind::kLlama3);
  EXPECT_EQ(config.rope_scaling.high_freq_factor, 4);
}

TEST(Config, RopeForms) {
  const auto linear = parse_with(kLlama, "rope_scaling", R"({"type": "linear", "factor": 2.0})");
  EXPECT_EQ(linear->rope_scaling.kind, RopeScalingKind::kLinear);
  EXPECT_EQ(linear->rope_scaling.factor, 2);
  const auto plain = parse_with(kLlama, "rope_scaling", R"({"rope_type": "default"})");
  EXPECT_EQ(plain->rope_scaling.kind, RopeScalingKind::kNone);
  EXPECT_THAT(error_with(kLlama, "rope_scaling", R"({"rope_type": "yarn", "factor": 4.0})"),
              HasSubstr("expected default, linear or llama3 at \"rope_type\", found \"yarn\""));
  EXPECT_THAT(error_with(kLlama, "rope_scaling", R"({"type": "dynamic", "factor": 4.0})"),
              HasSubstr("at \"type\", found \"dynamic\""));
  EXPECT_THAT(error_with(kLlama, "rope_scaling", R"({"rope_type": "llama3", "factor": 4.0})"),
              HasSubstr("\"low_freq_factor\""));
  EXPECT_THAT(error_with(kLlama, "rope_scaling", R"({"type": "linear", "factor": 0})"),
              HasSubstr("expected a positive number at \"factor\", found 0"));
  EXPECT_THAT(error_with(kLlama, "rope_scaling", "3"), HasSubstr("\"rope_scaling\""));
}

TEST(Config, Qwen2) {
  const ModelConfig config = parse(kQwen2).value();
  EXPECT_EQ(config.architecture, Architecture::kQwen2);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_FALSE(config.attention_out_bias || config.mlp_bias);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.norm_eps, 1e-6);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_FALSE(parse_with(kQwen2, "bos_token_id", "null")->bos_token_id.has_value());
}

TEST(Config, SlidingWindowsInUseAreRefused) {
  EXPECT_THAT(error_with(kQwen2, "layer_types", R"(["full_attention", "sliding_attention"])"),
              HasSubstr("\"layer_types\", found \"sliding_attention\""));
  EXPECT_TRUE(parse_with(kQwen2, "layer_types", R"(["full_attention"])"));
  // Every layer lies below max_window_layers: no window is used.
  EXPECT_TRUE(parse_with(kQwen2, "use_sliding_window", "true"));
  Json json = parse_json(kQwen2, "test").value();
  json["use_sliding_window"] = true;
  json["max_window_layers"] = 20;
  EXPECT_FALSE(parse_model_config(json, "test"));
  json["sliding_window"] = nullptr;
  EXPECT_TRUE(parse_model_config(json, "test"));
}

TEST(Config, OptionsThatChangeTheComputationAreNamed) {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"scale_attn_weights", "false"},
           {"scale_attn_by_inverse_layer_idx", "true"},
           {"add_cross_attention", "true"},
           {"quantization_config", R"({"quant_method": "gptq"})"}}) {
    EXPECT_THAT(error_with(kGpt2, key, value), HasSubstr("\"" + key + "\"")) << key;
  }
  EXPECT_TRUE(parse_with(kGpt2, "reorder_and_upcast_attn", "true"));
  EXPECT_THAT(error_with(kLlama, "partial_rotary_factor", "0.5"),
              HasSubstr("\"partial_rotary_factor\", the only setting supported, found 0.5"));
  EXPECT_THAT(error_with(kLlama, "torch_dtype", "\"float64\""), HasSubstr("\"torch_dtype\""));
}

TEST(Config, UnknownArchitectureIsNamed) {
  EXPECT_EQ(error_with(kLlama, "model_type", "\"mamba\""),
            "config.json: expected an architecture that assay knows (gpt2, llama, qwen2) at "
            "\"model_type\", found \"mamba\"");
  EXPECT_THAT(error_with(kLlama, "model_type", "absent"), HasSubstr("\"model_type\""));
  EXPECT_FALSE(parse_model_config(Json::array(), "test"));
}

TEST(Config, SizesAreChecked) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "max_position_embeddings"}) {
    for (const char* value :
         {"absent", "0", "-1", "1.5", "\"8\"", "9223372036854775807", "18446744073709551615"}) {
      EXPECT_THAT(error_with(kLlama, key, value), HasSubstr(key)) << value;
    }
  }
  EXPECT_THAT(error_with(kLlama, "num_key_value_heads", "5"), HasSubstr("multiple"));
  EXPECT_THAT(error_with(kLlama, "num_attention_heads", "31"), HasSubstr("multiple"));
  EXPECT_THAT(error_with(kLlama, "head_dim", "63"), HasSubstr("even head_dim"));
  EXPECT_THAT(error_with(kLlama, "head_dim", "1000000"), HasSubstr("\"head_dim\""));
  EXPECT_THAT(error_with(kQwen2, "num_key_value_heads", "absent"),
              HasSubstr("num_key_value_heads"));
  EXPECT_THAT(error_with(kGpt2, "n_head", "7"), HasSubstr("multiple"));
  EXPECT_THAT(error_with(kGpt2, "layer_norm_epsilon", "-1e-5"), HasSubstr("layer_norm_epsilon"));
  EXPECT_THAT(error_with(kLlama, "eos_token_id", "[1, \"two\"]"), HasSubstr("eos_token_id"));
}

TEST(Config, MissingFileIsNamed) {
  const auto config = read_model_config("/nonexistent");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("/nonexistent/config.json"));
}

// Expected values from transformers 5.17 (LlamaRotaryEmbedding.inv_freq, in fp32).
TEST(Rope, Llama3ScalingAgreesWithTransformers) {
  const auto frequencies = rope_inverse_frequencies(parse(kLlama).value());
  ASSERT_EQ(frequencies.size(), 32u);
  const std::vector<std::pair<size_t, double>> expected = {{0, 1},
                                                           {8, 0.0376060307},
                                                           {14, 0.00321144611},
                                                           {15, 0.00129054801},
                                                           {16, 0.000429556705},
                                                           {17, 9.70828623e-05},
                                                           {18, 1.94616387e-05},
                                                           {24, 1.66196742e-06},
                                                           {31, 9.41830649e-08}};
  for (const auto& [i, value] : expected) EXPECT_NEAR(frequencies[i] / value, 1, 2e-6) << i;
}

TEST(Rope, DefaultAndLinear) {
  ModelConfig config = parse(kQwen2).value();
  const auto plain = rope_inverse_frequencies(config);
  ASSERT_EQ(plain.size(), 32u);
  EXPECT_EQ(plain[0], 1);
  EXPECT_NEAR(plain[16], 1e-3, 1e-15);
  config.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
  EXPECT_NEAR(rope_inverse_frequencies(config)[16], 2.5e-4, 1e-15);
}

}  // namespace
}  // namespace assay::engine
