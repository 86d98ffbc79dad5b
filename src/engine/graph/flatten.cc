// Flattening: bodies are copied node by node, the fused node's inputs in the place of parameters.
#include "engine/graph/flatten.h"

namespace assay::engine {
namespace {

class Flattener {
 public:
  Graph run(const Graph& graph) {
    std::vector<ValueId> map(graph.values.size());
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      if (!std::holds_alternative<NodeSource>(graph.values[id].source)) {
        map[id] = add_value(graph.values[id]);
      }
    }
    copy_nodes(graph, map);
    for (const ValueId id : graph.outputs) flat_.outputs.push_back(map[id]);
    return std::move(flat_);
  }

 private:
  ValueId add_value(const Value& value) {
    flat_.values.push_back(value);
    return static_cast<ValueId>(flat_.values.size() - 1);
  }

  // `map` takes a value of `graph` to its own in the flat graph, and learns the nodes' outputs.
  void copy_nodes(const Graph& graph, std::vector<ValueId>& map) {
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::kFused) {
        inline_body(node, map);
        continue;
      }
      Node copy{node.op, {}, {}, node.attributes};
      for (const ValueId id : node.inputs) copy.inputs.push_back(map[id]);
      for (const ValueId id : node.outputs) {
        copy.outputs.push_back(map[id] = add_value(graph.values[id]));
      }
      flat_.nodes.push_back(std::move(copy));
    }
  }

  void inline_body(const Node& node, std::vector<ValueId>& map) {
    const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
    std::vector<ValueId> inner(body.values.size());
    for (ValueId id = 0; id < body.values.size(); ++id) {
      if (const auto* parameter = std::get_if<ParameterSource>(&body.values[id].source)) {
        inner[id] = map[node.inputs[parameter->index]];
      }
    }
    copy_nodes(body, inner);
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = inner[body.outputs[i]];
  }

  Graph flat_;
};

}  // namespace

Graph flatten(const Graph& graph) {
  return Flattener().run(graph);
}

}  // namespace assay::engine
