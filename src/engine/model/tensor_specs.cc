// The tensors of each family, by their Hugging Face names.
#include <fmt/format.h>

#include "engine/model/checkpoint.h"

namespace assay::engine {
namespace {

class Specs {
 public:
  void add(std::string name, Shape shape) { list_.push_back({std::move(name), shape}); }
  explicit Specs(WeightLayout layout) : layout_(layout) {}
  // A product's weight, and its bias.
  void add_linear(const std::string& name, int64_t in, int64_t out, bool bias) {
    add(name + ".weight", layout_ == WeightLayout::kOutIn ? Shape{out, in} : Shape{in, out});
    if (bias) add(name + ".bias", Shape{out});
  }
  void add_layer_norm(const std::string& name, int64_t width) {
    add(name + ".weight", Shape{width});
    add(name + ".bias", Shape{width});
  }
  std::vector<TensorSpec> take() { return std::move(list_); }

 private:
  WeightLayout layout_;
  std::vector<TensorSpec> list_;
};

std::vector<TensorSpec> gpt2_specs(const ModelConfig& config) {
  Specs specs(config.linear_layout);
  const int64_t width = config.hidden_size;
  specs.add("transformer.wte.weight", Shape{config.vocab_size, width});
  specs.add("transformer.wpe.weight", Shape{config.max_positions, width});
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("transformer.h.{}", i);
    specs.add_layer_norm(layer + ".ln_1", width);
    specs.add_linear(layer + ".attn.c_attn", width, 3 * width, true);
    specs.add_linear(layer + ".attn.c_proj", width, width, true);
    specs.add_layer_norm(layer + ".ln_2", width);
    specs.add_linear(layer + ".mlp.c_fc", width, config.intermediate_size, true);
    specs.add_linear(layer + ".mlp.c_proj", config.intermediate_size, width, true);
  }
  specs.add_layer_norm("transformer.ln_f", width);
  if (!config.tied_embeddings) specs.add("lm_head.weight", Shape{config.vocab_size, width});
  return specs.take();
}

std::vector<TensorSpec> llama_family_specs(const ModelConfig& config) {
  Specs specs(config.linear_layout);
  const int64_t width = config.hidden_size;
  const int64_t q_width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  specs.add("model.embed_tokens.weight", Shape{config.vocab_size, width});
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}", i);
    specs.add(layer + ".input_layernorm.weight", Shape{width});
    specs.add_linear(layer + ".self_attn.q_proj", width, q_width, config.qkv_bias);
    specs.add_linear(layer + ".self_attn.k_proj", width, kv_width, config.qkv_bias);
    specs.add_linear(layer + ".self_attn.v_proj", width, kv_width, config.qkv_bias);
    specs.add_linear(layer + ".self_attn.o_proj", q_width, width, config.attention_out_bias);
    specs.add(layer + ".post_attention_layernorm.weight", Shape{width});
    specs.add_linear(layer + ".mlp.gate_proj", width, config.intermediate_size, config.mlp_bias);
    specs.add_linear(layer + ".mlp.up_proj", width, config.intermediate_size, config.mlp_bias);
    specs.add_linear(layer + ".mlp.down_proj", config.intermediate_size, width, config.mlp_bias);
  }
  specs.add("model.norm.weight", Shape{width});
  if (!config.tied_embeddings) specs.add("lm_head.weight", Shape{config.vocab_size, width});
  return specs.take();
}

}  // namespace

std::vector<TensorSpec> tensor_specs(const ModelConfig& config) {
  std::vector<TensorSpec> specs =
      config.architecture == Architecture::kGpt2 ? gpt2_specs(config) : llama_family_specs(config);
  for (TensorSpec& spec : specs) spec.format = weight_format(config.dtype);
  return specs;
}

}  // namespace assay::engine
