// A layout for the weight of every product, for its kernel alone: panels that a thread reads from
// end to end.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/product_body.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

// A node's product: which of its inputs is the weight, and how that is to be laid out.
struct Product {
  size_t weight = 0;  // index among the node's inputs
  WeightLayout layout = WeightLayout::kOutIn;
  Packing packing;
};

// Absent for a node without a product. An error for one that can't be packed.
std::optional<Result<Product>> product_of(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kLinear) {
    const Dim& outputs = graph.values[node.outputs[0]].type.shape.back();
    if (!outputs.is_constant() || !is_weight(graph, node.inputs[1])) {
      return bad_input("expected a weight of the model, found a computed one");
    }
    return Product{1, std::get<LinearAttributes>(node.attributes).layout,
                   Packing{.segments = {outputs.factor()}}};
  }
  if (node.op != OpKind::kFused) return std::nullopt;
  const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
  const auto linear = std::ranges::find(body.nodes, OpKind::kLinear, &Node::op);
  if (linear == body.nodes.end()) return std::nullopt;
  const auto* parameter = std::get_if<ParameterSource>(&body.values[linear->inputs[1]].source);
  if (parameter == nullptr || !is_weight(graph, node.inputs[parameter->index])) {
    return bad_input("expected a weight of the model, found a computed one");
  }
  auto packing = product_packing(body);
  if (!packing) return std::unexpected(packing.error());
  return Product{parameter->index, std::get<LinearAttributes>(linear->attributes).layout,
                 std::move(*packing)};
}

}  // namespace

PassOutcome pack_weights(Graph& graph) {
  PassOutcome outcome;
  const Wiring wiring(graph);
  // A weight that something else reads too stays as it is beside its packed copy.
  using Layout = std::tuple<ValueId, size_t, int64_t, std::vector<int64_t>, bool>;
  std::map<Layout, ValueId> copies;
  for (Node& node : graph.nodes) {
    const auto product = product_of(graph, node);
    if (!product) continue;
    if (!*product) {
      outcome.rejected.push_back(fmt::format("{}: {}", node_name(node), product->error().message));
      continue;
    }
    ValueId& weight = node.inputs[(*product)->weight];
    const Packing& packing = (*product)->packing;
    if (std::get<WeightSource>(graph.values[weight].source).packing) continue;
    const size_t axis = (*product)->layout == WeightLayout::kOutIn ? 0 : 1;
    if (!wiring.read_once(weight)) {
      const auto [copy, is_new] =
          copies.try_emplace({weight, axis, packing.tile, packing.segments, packing.interleaved},
                             static_cast<ValueId>(graph.values.size()));
      if (is_new) graph.values.push_back(Value(graph.values[weight]));
      weight = copy->second;
    }
    auto& source = std::get<WeightSource>(graph.values[weight].source);
    source.axis = axis;
    source.packing = packing;
    ++outcome.changes;
  }
  return outcome;
}

}  // namespace assay::engine
