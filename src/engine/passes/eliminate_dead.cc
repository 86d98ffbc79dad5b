// Removes values that neither an output nor a written cache depends on, in the graph and in fused
// bodies; the others are numbered anew, in the order in which they are first named.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

// Walks backwards from the values that must stay to the nodes that they depend on.
class Liveness {
 public:
  explicit Liveness(const Graph& graph) : values(graph.values.size()), nodes(graph.nodes.size()) {
    for (const ValueId id : graph.outputs) values[id] = true;
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (values[node.outputs[k]] || written_cache(node, k)) nodes[i] = true;
      }
      if (!nodes[i]) continue;
      for (const ValueId id : node.inputs) values[id] = true;
    }
  }

  std::vector<bool> values;  // read by a live node, or an output
  std::vector<bool> nodes;
};

int64_t drop_nodes(Graph& graph, const Liveness& live) {
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (live.nodes[i]) nodes.push_back(std::move(graph.nodes[i]));
  }
  const auto dropped = static_cast<int64_t>(graph.nodes.size() - nodes.size());
  graph.nodes = std::move(nodes);
  return dropped;
}

// A fused node without the outputs that nothing reads, and without their own nodes.
int64_t prune(Node& node, const std::vector<bool>& live) {
  Graph body = *std::get<FusedAttributes>(node.attributes).body;
  std::vector<ValueId> outputs;
  std::vector<ValueId> inner_outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!live[node.outputs[i]] && !written_cache(node, i)) continue;
    outputs.push_back(node.outputs[i]);
    inner_outputs.push_back(body.outputs[i]);
  }
  auto dropped = static_cast<int64_t>(node.outputs.size() - outputs.size());
  body.outputs = std::move(inner_outputs);
  const Liveness inner(body);
  dropped += drop_nodes(body, inner);
  if (dropped == 0) return 0;
  std::vector<ValueId> inputs;
  std::vector<bool> keep(body.values.size());
  for (size_t id = 0; id < body.values.size(); ++id) {
    if (auto* parameter = std::get_if<ParameterSource>(&body.values[id].source)) {
      keep[id] = inner.values[id];
      if (!keep[id]) continue;
      inputs.push_back(node.inputs[parameter->index]);
      parameter->index = inputs.size() - 1;
    }
  }
  for (const Node& n : body.nodes) {
    for (const ValueId id : n.outputs) keep[id] = true;
  }
  keep_values(body, keep);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = FusedAttributes{std::make_shared<const Graph>(std::move(body))};
  return dropped;
}

// Values in the order in which nodes first name them; those never named go.
int64_t number_anew(Graph& graph) {
  std::map<ValueId, ValueId> ids;
  std::vector<Value> values;
  const auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& id : list) {
      const auto [it, is_new] = ids.try_emplace(id, static_cast<ValueId>(values.size()));
      if (is_new) values.push_back(std::move(graph.values[id]));
      id = it->second;
    }
  };
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
  rename(graph.outputs);
  const auto dropped = static_cast<int64_t>(graph.values.size() - values.size());
  graph.values = std::move(values);
  return dropped;
}

}  // namespace

PassOutcome eliminate_dead(Graph& graph) {
  PassOutcome outcome;
  const Liveness live(graph);
  outcome.changes += drop_nodes(graph, live);
  // Pruning may leave values without a reader that a fused node read before: once more, to the end.
  for (bool pruned = true; pruned;) {
    pruned = false;
    const Liveness now(graph);
    outcome.changes += drop_nodes(graph, now);
    for (Node& node : graph.nodes) {
      if (node.op != OpKind::kFused) continue;
      const int64_t dropped = prune(node, now.values);
      outcome.changes += dropped;
      pruned = pruned || dropped > 0;
    }
  }
  outcome.changes += number_anew(graph);
  return outcome;
}

}  // namespace assay::engine
