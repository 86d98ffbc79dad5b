// A fused node answers for its body, whose sources are the node's inputs.
#include "engine/graph/queries.h"

#include <algorithm>

namespace assay::engine {
namespace {

size_t parameter_index(const Graph& body, ValueId id) {
  return std::get<ParameterSource>(body.values[id].source).index;
}

}  // namespace

bool is_weight(const Graph& graph, ValueId id) {
  return std::holds_alternative<WeightSource>(graph.values[id].source);
}

std::vector<ValueId> view_bases(const Graph& graph) {
  std::vector<ValueId> bases(graph.values.size());
  for (ValueId id = 0; id < bases.size(); ++id) bases[id] = id;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) bases[node.outputs[0]] = bases[node.inputs[0]];
  }
  return bases;
}

std::optional<ProductNode> product_of(const Node& node) {
  if (const auto* linear = std::get_if<LinearAttributes>(&node.attributes)) {
    return ProductNode{1, linear->layout};
  }
  const auto* fused = std::get_if<FusedAttributes>(&node.attributes);
  if (fused == nullptr) return std::nullopt;
  const Graph& body = *fused->body;
  const auto linear = std::ranges::find(body.nodes, OpKind::kLinear, &Node::op);
  if (linear == body.nodes.end()) return std::nullopt;
  return ProductNode{parameter_index(body, linear->inputs[1]),
                     std::get<LinearAttributes>(linear->attributes).layout};
}

std::optional<size_t> written_cache(const Node& node, size_t index) {
  if (node.op == OpKind::kKvWrite) return 0;
  const auto* fused = std::get_if<FusedAttributes>(&node.attributes);
  if (fused == nullptr) return std::nullopt;
  const Graph& body = *fused->body;
  for (const Node& inner : body.nodes) {
    if (inner.op == OpKind::kKvWrite && inner.outputs[0] == body.outputs[index]) {
      return parameter_index(body, inner.inputs[0]);
    }
  }
  return std::nullopt;
}

std::vector<std::optional<CacheSource>> cache_values(const Graph& graph) {
  std::vector<std::optional<CacheSource>> caches(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (const auto* cache = std::get_if<CacheSource>(&graph.values[id].source)) caches[id] = *cache;
  }
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (const auto input = written_cache(node, i)) {
        caches[node.outputs[i]] = caches[node.inputs[*input]];
      }
    }
  }
  return caches;
}

}  // namespace assay::engine
