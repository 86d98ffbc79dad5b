// The nodes that no product took: elementwise work, row reductions and gathers over the same rows
// become one kernel, a row at a time.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

// The rows that a node works on one by one; absent if it isn't such a node.
std::optional<Dim> rows_of(const Graph& graph, const Node& node) {
  const SymbolicShape& in = graph.values[node.inputs[0]].type.shape;
  switch (node.op) {
    case OpKind::kEmbedding:
      if (!is_weight(graph, node.inputs[1])) return std::nullopt;
      return elements(in);
    case OpKind::kPositions:
      return elements(graph.values[node.outputs[0]].type.shape);
    case OpKind::kAdd:
    case OpKind::kMultiply:
    case OpKind::kActivate:
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
    case OpKind::kArgmax:
      if (in.empty() || !in.back().is_constant()) return std::nullopt;
      return elements(std::span(in).first(in.size() - 1));
    default:
      return std::nullopt;
  }
}

// A node and those that can be computed with it, row by row.
class RowGroup {
 public:
  RowGroup(Fusion& fusion, size_t seed, const Dim& rows)
      : fusion_(fusion), rows_(rows), members_{seed} {}

  bool grow() {
    for (bool grown = true; grown;) {
      grown = false;
      for (const size_t next : neighbours()) grown = join(next) || grown;
    }
    return members_.size() > 1;
  }

  size_t apply() { return fusion_.fuse(members_, std::move(node_)); }
  size_t first() const { return members_.front(); }

 private:
  // Nodes over the same rows that compute a member's input, or read its output.
  std::vector<size_t> neighbours() const {
    std::vector<size_t> found;
    const auto add = [&](size_t i) {
      if (std::ranges::binary_search(members_, i)) return;
      if (rows_of(fusion_.graph(), fusion_.graph().nodes[i]) == rows_) found.push_back(i);
    };
    for (const size_t member : members_) {
      const Node& node = fusion_.graph().nodes[member];
      for (const ValueId id : node.inputs) {
        if (const auto producer = fusion_.wiring().producer(id)) add(*producer);
      }
      for (const ValueId id : node.outputs) {
        for (const size_t reader : fusion_.wiring().readers(id)) add(reader);
      }
    }
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
    return found;
  }

  bool join(size_t next) {
    std::vector<size_t> members = members_;
    members.insert(std::ranges::upper_bound(members, next), next);
    const Graph& graph = fusion_.graph();
    if (!is_convex(fusion_.wiring(), members)) {
      fusion_.reject(graph.nodes[next],
                     {.message = fmt::format("expected inputs that don't wait for {}, found one "
                                             "that does",
                                             node_name(graph.nodes[members_.front()]))});
      return false;
    }
    Result<Node> fused = fused_node(graph, fusion_.wiring(), members);
    if (!fused) {
      fusion_.reject(graph.nodes[next], fused.error());
      return false;
    }
    node_ = std::move(*fused);
    members_ = std::move(members);
    return true;
  }

  Fusion& fusion_;
  Dim rows_;
  std::vector<size_t> members_;  // ascending
  Node node_;                    // of the members, once there are two
};

}  // namespace

PassOutcome fuse_pointwise(Graph& graph) {
  Fusion fusion(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto rows = rows_of(graph, graph.nodes[i]);
    if (!rows) continue;
    RowGroup group(fusion, i, *rows);
    if (!group.grow()) continue;
    const size_t first = group.first();
    if (group.apply() != i || first != i) i = first == 0 ? static_cast<size_t>(-1) : first - 1;
  }
  return fusion.finish();
}

}  // namespace assay::engine
