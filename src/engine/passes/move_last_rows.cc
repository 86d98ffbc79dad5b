// Rows that nobody reads are not computed: last_rows moves before the operators that work on each
// row by itself, in a model before everything behind the last layer's attention.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

// The inputs of which an output's row needs only the same row. Empty for an operator that needs
// other rows.
std::vector<size_t> row_inputs(const Graph& graph, const Node& node) {
  switch (node.op) {
    case OpKind::kAdd:
    case OpKind::kMultiply:
      return {0, 1};
    case OpKind::kActivate:
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
      return {0};
    case OpKind::kLinear:
      return is_weight(graph, node.inputs[1]) ? std::vector<size_t>{0} : std::vector<size_t>{};
    default:
      return {};
  }
}

// Walks the nodes from the last to the first, so that an operator's readers are known when it is
// reached.
class Mover {
 public:
  explicit Mover(Graph& graph) : graph_(graph), needed_(graph.values.size(), false) {}

  PassOutcome run() {
    for (const ValueId id : graph_.outputs) needed_[id] = true;
    for (size_t i = graph_.nodes.size(); i-- > 0;) visit(std::move(graph_.nodes[i]));
    for (const auto& [whole, rows] : rows_of_) take(whole, rows);  // of sources
    graph_.nodes.assign(std::make_move_iterator(backwards_.rbegin()),
                        std::make_move_iterator(backwards_.rend()));
    rename();
    sweep(graph_);
    return {.changes = moved_, .rejected = {}};
  }

 private:
  void visit(Node node) {
    if (node.op == OpKind::kLastRows) {
      const auto [known, is_new] = rows_of_.try_emplace(node.inputs[0], node.outputs[0]);
      if (!is_new) same_[node.outputs[0]] = known->second;
      return;
    }
    if (!move_before(node)) {
      for (const ValueId id : node.outputs) take_from(id);
      for (const ValueId id : node.inputs) needed_[id] = true;
    }
    backwards_.push_back(std::move(node));
  }

  // Makes the operator compute the last rows alone, if no other row of its output is read.
  bool move_before(Node& node) {
    const auto rows = rows_of_.find(node.outputs[0]);
    if (rows == rows_of_.end() || needed_[node.outputs[0]]) return false;
    const std::vector<size_t> inputs = row_inputs(graph_, node);
    if (inputs.empty()) return false;
    node.outputs[0] = rows->second;
    rows_of_.erase(rows);
    for (const size_t i : inputs) node.inputs[i] = last_rows_of(node.inputs[i]);
    ++moved_;
    return true;
  }

  ValueId last_rows_of(ValueId whole) {
    if (const auto rows = rows_of_.find(whole); rows != rows_of_.end()) return rows->second;
    const TensorType type = {graph_.values[whole].type.dtype,
                             {Dim::batch(), graph_.values[whole].type.shape.back()}};
    graph_.values.push_back({type, NodeSource{}});
    needed_.push_back(false);
    return rows_of_[whole] = static_cast<ValueId>(graph_.values.size() - 1);
  }

  // Right behind the node that computes the whole value.
  void take_from(ValueId whole) {
    const auto rows = rows_of_.find(whole);
    if (rows == rows_of_.end()) return;
    take(whole, rows->second);
    rows_of_.erase(rows);
  }
  void take(ValueId whole, ValueId rows) {
    backwards_.push_back({OpKind::kLastRows, {whole}, {rows}, {}});
  }

  void rename() {
    const auto renamed = [&](std::vector<ValueId>& ids) {
      for (ValueId& id : ids) {
        if (const auto same = same_.find(id); same != same_.end()) id = same->second;
      }
    };
    for (Node& node : graph_.nodes) renamed(node.inputs);
    renamed(graph_.outputs);
  }

  Graph& graph_;
  std::vector<bool> needed_;            // by value: a node seen so far reads all of its rows
  std::map<ValueId, ValueId> rows_of_;  // whole values, and their last rows, not yet computed
  std::map<ValueId, ValueId> same_;     // last rows that stood twice, by those that stay
  std::vector<Node> backwards_;
  int64_t moved_ = 0;
};

}  // namespace

PassOutcome move_last_rows(Graph& graph) {
  return Mover(graph).run();
}

}  // namespace assay::engine
