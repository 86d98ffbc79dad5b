// GPT-2: learned positions, LayerNorm, one product for q, k and v, a plain MLP; weights are
// Conv1D's [in, out], or transposed as GGUF has them.
#include <fmt/format.h>

#include "engine/graph/architectures.h"

namespace assay::engine {
namespace {

ValueId layer_norm(GraphBuilder& graph, const ModelConfig& config, ValueId x,
                   const std::string& prefix) {
  return graph.add(OpKind::kLayerNorm,
                   {x, graph.weight(prefix + ".weight"), graph.weight(prefix + ".bias")},
                   NormAttributes{config.norm_eps});
}

ValueId attention(GraphBuilder& graph, const ModelConfig& config, ValueId x, int64_t layer,
                  const std::string& prefix) {
  const int64_t width = config.heads * config.head_dim;
  const ValueId qkv = graph.linear(x, prefix + ".c_attn", true, config.linear_layout);
  const std::vector<ValueId> parts =
      graph.add_many(OpKind::kSplit, {qkv}, SplitAttributes{{width, width, width}});
  if (parts.empty()) return x;  // ill-typed: finish() reports it
  const auto heads = [&](size_t i) {
    return graph.split_heads(parts[i], config.heads, config.head_dim);
  };
  const auto write = [&](CachePart part, ValueId value) {
    return graph.kv_write(graph.cache(layer, part, config.kv_heads, config.head_dim), value);
  };
  const ValueId q = heads(0), k = heads(1), v = heads(2);
  const ValueId keys = write(CachePart::kKeys, k);
  const ValueId values = write(CachePart::kValues, v);
  const ValueId mixed = graph.attention(q, keys, values);
  return graph.linear(graph.merge_heads(mixed, config.heads, config.head_dim), prefix + ".c_proj",
                      true, config.linear_layout);
}

ValueId mlp(GraphBuilder& graph, const ModelConfig& config, ValueId x, const std::string& prefix) {
  const ValueId up = graph.linear(x, prefix + ".c_fc", true, config.linear_layout);
  const ValueId active = graph.add(OpKind::kActivate, {up}, ActivateAttributes{config.activation});
  return graph.linear(active, prefix + ".c_proj", true, config.linear_layout);
}

}  // namespace

ValueId build_gpt2(GraphBuilder& graph, const ModelConfig& config) {
  const ValueId tokens =
      graph.add(OpKind::kEmbedding, {graph.ids(), graph.weight("transformer.wte.weight")});
  const ValueId positions = graph.add(OpKind::kPositions, {graph.lengths(), graph.pad()});
  const ValueId places =
      graph.add(OpKind::kEmbedding, {positions, graph.weight("transformer.wpe.weight")});
  ValueId x = graph.add(OpKind::kAdd, {tokens, places});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = fmt::format("transformer.h.{}", layer);
    const ValueId attended = attention(
        graph, config, layer_norm(graph, config, x, prefix + ".ln_1"), layer, prefix + ".attn");
    x = graph.add(OpKind::kAdd, {attended, x});
    const ValueId mixed =
        mlp(graph, config, layer_norm(graph, config, x, prefix + ".ln_2"), prefix + ".mlp");
    x = graph.add(OpKind::kAdd, {x, mixed});
  }
  return layer_norm(graph, config, x, "transformer.ln_f");
}

}  // namespace assay::engine
