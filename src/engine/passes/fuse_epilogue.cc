// The nodes behind a product, column by column, become part of its kernel: its results never travel
// through memory in between.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

bool may_follow(OpKind op) {
  switch (op) {
    case OpKind::kSplit:
    case OpKind::kView:
    case OpKind::kRope:
    case OpKind::kKvWrite:
    case OpKind::kActivate:
    case OpKind::kMultiply:
    case OpKind::kAdd:
      return true;
    default:
      return false;
  }
}

// A product with a weight of the model, alone or fused.
bool is_product(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kLinear) return is_weight(graph, node.inputs[1]);
  if (node.op != OpKind::kFused) return false;
  const auto& nodes = std::get<FusedAttributes>(node.attributes).body->nodes;
  return std::ranges::find(nodes, OpKind::kLinear, &Node::op) != nodes.end();
}

// Grows one product's kernel node by node, as far as it goes.
class Epilogue {
 public:
  Epilogue(Fusion& fusion, size_t product) : fusion_(fusion), members_{product} {}

  // Joins as many nodes to the product as may be. True if any did.
  bool grow() {
    with_last_rows(members_.front());
    for (auto next = candidate(); next; next = candidate()) {
      tried_.insert(*next);
      if (const Status status = join(*next); !status) {
        fusion_.reject(fusion_.graph().nodes[*next], status.error());
      } else {
        tried_ = {members_.begin(), members_.end()};  // a refused node may fit now
      }
    }
    return members_.size() > 1;
  }

  // The index of the fused node.
  size_t apply() { return fusion_.fuse(members_, std::move(node_)); }

 private:
  // The first node not tried that reads a member's output and may follow a product.
  std::optional<size_t> candidate() const {
    std::optional<size_t> first;
    for (const size_t member : members_) {
      for (const ValueId id : fusion_.graph().nodes[member].outputs) {
        for (const size_t reader : fusion_.wiring().readers(id)) {
          if (tried_.contains(reader) || std::ranges::binary_search(members_, reader)) continue;
          if (!may_follow(fusion_.graph().nodes[reader].op)) continue;
          if (!first || reader < *first) first = reader;
        }
      }
    }
    return first;
  }

  Status join(size_t next) {
    const Node& node = fusion_.graph().nodes[next];
    // A view beside its base would store the same elements twice.
    if (node.op == OpKind::kView && !fusion_.wiring().read_once(node.inputs[0])) {
      return bad_input("expected a view that alone reads %{}, found other readers", node.inputs[0]);
    }
    if (with_last_rows(next)) return {};
    return with({next});
  }

  // Takes a node together with the last_rows nodes whose values it alone reads; false, and nothing
  // is taken, if it reads none or they don't fit.
  bool with_last_rows(size_t reader) {
    std::vector<size_t> nodes = {reader};
    for (const ValueId id : fusion_.graph().nodes[reader].inputs) {
      const auto producer = fusion_.wiring().producer(id);
      if (!producer || fusion_.graph().nodes[*producer].op != OpKind::kLastRows) continue;
      if (fusion_.wiring().read_once(id)) nodes.push_back(*producer);
    }
    return nodes.size() > 1 && with(nodes).has_value();
  }

  Status with(const std::vector<size_t>& nodes) {
    std::vector<size_t> members = members_;
    members.insert(members.end(), nodes.begin(), nodes.end());
    std::ranges::sort(members);
    const auto repeated = std::ranges::unique(members);
    members.erase(repeated.begin(), repeated.end());
    if (!is_convex(fusion_.wiring(), members)) {
      return bad_input("expected inputs that don't wait for the product, found one that does");
    }
    ASSAY_TRY(node_, fused_node(fusion_.graph(), fusion_.wiring(), members));
    members_ = std::move(members);
    return {};
  }

  Fusion& fusion_;
  std::vector<size_t> members_;  // ascending
  std::set<size_t> tried_;
  Node node_;  // of the members, once there are two
};

}  // namespace

PassOutcome fuse_epilogue(Graph& graph) {
  Fusion fusion(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_product(graph, graph.nodes[i])) continue;
    Epilogue epilogue(fusion, i);
    if (!epilogue.grow()) continue;
    // Nodes that haven't been looked at stand behind the fused one, or in its old place.
    const size_t at = epilogue.apply();
    if (at > i) {
      --i;
    } else {
      i = at;
    }
  }
  return fusion.finish();
}

}  // namespace assay::engine
