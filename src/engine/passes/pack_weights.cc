// A layout for the weight of every product, for its kernel alone: panels that a thread reads from
// end to end, or columns that a warp does.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/codegen/lower/lower.h"
#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

Result<Packing> packing_of(const Graph& graph, const Node& node, const ProductNode& product,
                           TileLayout layout) {
  if (!is_weight(graph, node.inputs[product.weight])) {
    return bad_input("expected a weight of the model, found a computed one");
  }
  return product_packing(graph, node, layout);
}

PassOutcome pack_weights(Graph& graph, TileLayout layout) {
  PassOutcome outcome;
  const Wiring wiring(graph);
  // A weight that something else reads too stays as it is beside its packed copy.
  std::map<std::tuple<ValueId, size_t, Packing>, ValueId> copies;
  for (Node& node : graph.nodes) {
    const auto product = product_of(node);
    if (!product) continue;
    const auto packing = packing_of(graph, node, *product, layout);
    if (!packing) {
      outcome.rejected.push_back(fmt::format("{}: {}", node_name(node), packing.error().message));
      continue;
    }
    ValueId& weight = node.inputs[product->weight];
    if (std::get<WeightSource>(graph.values[weight].source).packing) continue;
    const size_t axis = product->layout == WeightLayout::kOutIn ? 0 : 1;
    if (!wiring.read_once(weight)) {
      const auto [copy, is_new] =
          copies.try_emplace({weight, axis, *packing}, static_cast<ValueId>(graph.values.size()));
      if (is_new) graph.values.push_back(Value(graph.values[weight]));
      weight = copy->second;
    }
    auto& source = std::get<WeightSource>(graph.values[weight].source);
    source.axis = axis;
    source.packing = *packing;
    ++outcome.changes;
  }
  return outcome;
}

}  // namespace

PassOutcome pack_weights_in_panels(Graph& graph) {
  return pack_weights(graph, TileLayout::kPanels);
}

PassOutcome pack_weights_in_rows(Graph& graph) {
  return pack_weights(graph, TileLayout::kRows);
}

}  // namespace assay::engine
