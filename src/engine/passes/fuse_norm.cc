// A norm that one product alone reads becomes that product's prologue, which computes it again for
// each thread: cheaper than a barrier and a trip through memory.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

bool is_norm(const Node& node) {
  return node.op == OpKind::kLayerNorm || node.op == OpKind::kRmsNorm;
}

// The nodes that become one with the norm, or why there are none. Absent: nothing to do with a
// product.
std::optional<Result<std::vector<size_t>>> group_of(const Graph& graph, const Wiring& wiring,
                                                    size_t norm) {
  const ValueId out = graph.nodes[norm].outputs[0];
  const std::span<const size_t> readers = wiring.readers(out);
  const auto product = std::ranges::find_if(readers, [&](size_t i) {
    return graph.nodes[i].op == OpKind::kLinear && graph.nodes[i].inputs[0] == out;
  });
  if (product == readers.end()) return std::nullopt;
  if (!wiring.read_once(out)) {
    return bad_input("expected one product that alone reads it, found {} readers",
                     readers.size() + (wiring.is_output(out) ? 1 : 0));
  }
  if (!is_weight(graph, graph.nodes[*product].inputs[1])) {
    return bad_input("expected a product with a weight, found a computed one");
  }
  std::vector<size_t> group = {norm, *product};
  const ValueId x = graph.nodes[norm].inputs[0];
  if (const auto before = wiring.producer(x);
      before && graph.nodes[*before].op == OpKind::kLastRows && wiring.read_once(x)) {
    group.push_back(*before);
  }
  std::ranges::sort(group);
  return group;
}

// A norm that products alone read, whose weights are in unlike formats so that nobody could merge
// them, is computed by each.
void give_each_product_its_own(Graph& graph) {
  const Wiring wiring(graph);
  std::map<size_t, ValueId> of_reader;
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    nodes.push_back(graph.nodes[i]);
    if (const auto own = of_reader.find(i); own != of_reader.end()) {
      nodes.back().inputs[0] = own->second;
    }
    const ValueId out = graph.nodes[i].outputs[0];
    if (!is_norm(graph.nodes[i]) || wiring.is_output(out)) continue;
    const std::span<const size_t> readers = wiring.readers(out);
    std::set<WeightFormat> formats;
    const bool products = std::ranges::all_of(readers, [&](size_t reader) {
      const Node& node = graph.nodes[reader];
      if (node.op != OpKind::kLinear || node.inputs[0] != out) return false;
      const auto* weight = std::get_if<WeightSource>(&graph.values[node.inputs[1]].source);
      if (weight != nullptr) formats.insert(weight->format);
      return weight != nullptr;
    });
    if (!products || formats.size() < 2) continue;
    for (size_t r = 1; r < readers.size(); ++r) {
      const auto copy = static_cast<ValueId>(graph.values.size());
      graph.values.push_back(Value(graph.values[out]));
      of_reader[readers[r]] = copy;
      nodes.push_back(graph.nodes[i]);
      nodes.back().outputs[0] = copy;
    }
  }
  graph.nodes = std::move(nodes);
}

}  // namespace

PassOutcome fuse_norm(Graph& graph) {
  give_each_product_its_own(graph);
  Fusion fusion(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_norm(graph.nodes[i])) continue;
    const auto group = group_of(graph, fusion.wiring(), i);
    if (!group) continue;
    const auto fused = *group ? fused_node(graph, fusion.wiring(), **group)
                              : Result<Node>(std::unexpected(group->error()));
    if (fused) {
      const size_t first = (*group)->front();
      fusion.fuse(**group, *fused);
      i = first == 0 ? 0 : first - 1;
    } else {
      fusion.reject(graph.nodes[i], fused.error());
    }
  }
  return fusion.finish();
}

}  // namespace assay::engine
