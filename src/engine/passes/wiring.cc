// Producers, readers and orders, in one walk over the nodes.
#include "engine/passes/wiring.h"

#include <algorithm>

namespace assay::engine {
namespace {

// The caches (values of the graph) that a node writes.
std::vector<ValueId> written_caches(const Node& node) {
  if (node.op == OpKind::kKvWrite) return {node.inputs[0]};
  std::vector<ValueId> caches;
  if (node.op != OpKind::kFused) return caches;
  const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
  for (const Node& inner : body.nodes) {
    if (inner.op != OpKind::kKvWrite) continue;
    const auto& parameter = std::get<ParameterSource>(body.values[inner.inputs[0]].source);
    caches.push_back(node.inputs[parameter.index]);
  }
  return caches;
}

}  // namespace

Wiring::Wiring(const Graph& graph)
    : producer(graph.values.size()),
      readers(graph.values.size()),
      is_output(graph.values.size()),
      predecessors(graph.nodes.size()) {
  std::vector<ValueId> base(graph.values.size());  // what a view is a view of
  for (ValueId id = 0; id < base.size(); ++id) base[id] = id;
  std::vector<std::vector<size_t>> base_readers(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const ValueId id : node.inputs) {
      if (producer[id]) predecessors[i].push_back(*producer[id]);
      readers[id].push_back(i);
    }
    for (const ValueId cache : written_caches(node)) {
      const std::vector<size_t>& before = base_readers[cache];
      predecessors[i].insert(predecessors[i].end(), before.begin(), before.end());
    }
    for (const ValueId id : node.inputs) base_readers[base[id]].push_back(i);
    for (const ValueId id : node.outputs) producer[id] = i;
    if (node.op == OpKind::kView) base[node.outputs[0]] = base[node.inputs[0]];
  }
  for (const ValueId id : graph.outputs) is_output[id] = true;
}

bool is_convex(const Wiring& wiring, std::span<const size_t> members) {
  std::vector<bool> is_member(wiring.predecessors.size());
  for (const size_t i : members) is_member[i] = true;
  std::vector<bool> outside(wiring.predecessors.size());  // not members, but they follow one
  const size_t first = *std::ranges::min_element(members);
  const size_t last = *std::ranges::max_element(members);
  for (size_t i = first; i <= last; ++i) {
    for (const size_t before : wiring.predecessors[i]) {
      if (is_member[i] && outside[before]) return false;
      if (!is_member[i] && (is_member[before] || outside[before])) outside[i] = true;
    }
  }
  return true;
}

bool writes_cache(const Node& node, size_t index) {
  if (node.op == OpKind::kKvWrite) return true;
  if (node.op != OpKind::kFused) return false;
  const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
  const ValueId inner = body.outputs[index];
  return std::ranges::any_of(
      body.nodes, [&](const Node& n) { return n.op == OpKind::kKvWrite && n.outputs[0] == inner; });
}

bool is_weight(const Graph& graph, ValueId id) {
  return std::holds_alternative<WeightSource>(graph.values[id].source);
}

}  // namespace assay::engine
