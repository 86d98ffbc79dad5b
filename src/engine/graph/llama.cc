// Llama and Qwen2: RoPE, RMSNorm, apart products for q, k, v, gate and up; which biases exist is
// the config's.
#include <fmt/format.h>

#include "engine/graph/architectures.h"

namespace assay::engine {
namespace {

ValueId rms_norm(GraphBuilder& graph, const ModelConfig& config, ValueId x,
                 const std::string& prefix) {
  return graph.add(OpKind::kRmsNorm, {x, graph.weight(prefix + ".weight")},
                   NormAttributes{config.norm_eps});
}

ValueId rope(GraphBuilder& graph, const ModelConfig& config, ValueId x) {
  const auto table = [&](ConstantKind kind) {
    return graph.rope_table(kind, config.max_positions, config.head_dim);
  };
  return graph.add(OpKind::kRope, {x, graph.lengths(), graph.pad(), table(ConstantKind::kRopeCos),
                                   table(ConstantKind::kRopeSin)});
}

ValueId attention(GraphBuilder& graph, const ModelConfig& config, ValueId x, int64_t layer,
                  const std::string& prefix) {
  const auto project = [&](const char* name, int64_t heads) {
    return graph.split_heads(graph.linear(x, prefix + name, config.qkv_bias, WeightLayout::kOutIn),
                             heads, config.head_dim);
  };
  const auto write = [&](CachePart part, ValueId value) {
    return graph.kv_write(graph.cache(layer, part, config.kv_heads, config.head_dim), value);
  };
  const ValueId q = project(".q_proj", config.heads);
  const ValueId k = project(".k_proj", config.kv_heads);
  const ValueId v = project(".v_proj", config.kv_heads);
  const ValueId q_turned = rope(graph, config, q);
  const ValueId k_turned = rope(graph, config, k);
  const ValueId keys = write(CachePart::kKeys, k_turned);
  const ValueId values = write(CachePart::kValues, v);
  const ValueId mixed = graph.attention(q_turned, keys, values);
  return graph.linear(graph.merge_heads(mixed, config.heads, config.head_dim), prefix + ".o_proj",
                      config.attention_out_bias, WeightLayout::kOutIn);
}

ValueId mlp(GraphBuilder& graph, const ModelConfig& config, ValueId x, const std::string& prefix) {
  const auto linear = [&](ValueId in, const char* name) {
    return graph.linear(in, prefix + name, config.mlp_bias, WeightLayout::kOutIn);
  };
  const ValueId gate = graph.add(OpKind::kActivate, {linear(x, ".gate_proj")},
                                 ActivateAttributes{config.activation});
  const ValueId up = linear(x, ".up_proj");
  return linear(graph.add(OpKind::kMultiply, {gate, up}), ".down_proj");
}

}  // namespace

ValueId build_llama(GraphBuilder& graph, const ModelConfig& config) {
  ValueId x =
      graph.add(OpKind::kEmbedding, {graph.ids(), graph.weight("model.embed_tokens.weight")});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}", layer);
    const ValueId attended =
        attention(graph, config, rms_norm(graph, config, x, prefix + ".input_layernorm"), layer,
                  prefix + ".self_attn");
    x = graph.add(OpKind::kAdd, {x, attended});
    const ValueId mixed =
        mlp(graph, config, rms_norm(graph, config, x, prefix + ".post_attention_layernorm"),
            prefix + ".mlp");
    x = graph.add(OpKind::kAdd, {x, mixed});
  }
  return rms_norm(graph, config, x, "model.norm");
}

}  // namespace assay::engine
