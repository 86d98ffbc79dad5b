// Helpers of rewriting passes: several nodes into one fused node, and tidying up after.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/passes/pass.h"
#include "engine/passes/wiring.h"

namespace assay::engine {

constexpr int64_t kMaxTile = 512;  // columns

// The members (indices, ascending, convex) as one fused node; fused ones among them are inlined.
// Its outputs are the members' values that others read, the graph's outputs, and the caches that
// are written. bad_input if nothing of it would be read, it would read too much, or no kernel can
// compute it: lowering's rules, and a product's tiles of at most kMaxTile columns.
Result<Node> fused_node(const Graph& graph, const Wiring& wiring, std::span<const size_t> members);

// A graph while a pass fuses nodes of it, with the refusals.
class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph), wiring_(graph) {}

  const Graph& graph() const { return graph_; }
  const Wiring& wiring() const { return wiring_; }

  // Puts `node` in the place of the members (ascending, convex) and brings the nodes into an order
  // that may be executed, as near to the present one as can be. Nodes before the first member keep
  // their indices, others may not; the index of `node` is returned.
  size_t fuse(std::span<const size_t> members, Node node);
  // `node` stays as it is, unless it is fused later on.
  void reject(const Node& node, const Error& why);

  // Tidies the graph; the object is of no use after.
  PassOutcome finish();

 private:
  Graph& graph_;
  Wiring wiring_;
  int64_t changes_ = 0;
  std::map<ValueId, std::string> rejected_;  // by the node's first output
};

// Removes computed values that no node computes. The others keep their order.
void sweep(Graph& graph);

// Keeps the values marked, which must be all that nodes and outputs name; the others keep their
// order.
void keep_values(Graph& graph, const std::vector<bool>& keep);

// "%31 rope", for lists of rejections.
std::string node_name(const Node& node);

}  // namespace assay::engine
