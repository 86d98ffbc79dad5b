// Fused nodes: their bodies, and their place in the graph.
#include "engine/passes/rewrite.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <queue>
#include <utility>

#include "engine/codegen/lower/lower.h"

namespace assay::engine {
namespace {

constexpr size_t kMaxInputs = 64;  // as infer_types has it

// A body grown node by node; an input that no node before it computes becomes a parameter.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph) {}

  void add(const Node& node) {
    if (node.op != OpKind::kFused) {
      add_node(
          graph_, node, [&](ValueId id) { return value_of(id); }, ids_);
      return;
    }
    const Graph& inner = *std::get<FusedAttributes>(node.attributes).body;
    std::map<ValueId, ValueId> map;  // of the inner body's values
    const auto of_inner = [&](ValueId id) {
      const auto* parameter = std::get_if<ParameterSource>(&inner.values[id].source);
      return parameter == nullptr ? map.at(id) : value_of(node.inputs[parameter->index]);
    };
    for (const Node& n : inner.nodes) add_node(inner, n, of_inner, map);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ids_[node.outputs[i]] = of_inner(inner.outputs[i]);
    }
  }

  void add_output(ValueId id) {
    body_.outputs.push_back(ids_.at(id));
    node_.outputs.push_back(id);
  }

  Node finish() {
    node_.op = OpKind::kFused;
    node_.attributes = FusedAttributes{std::make_shared<const Graph>(std::move(body_))};
    return std::move(node_);
  }

 private:
  ValueId value_of(ValueId outer) {
    const auto [it, is_new] = ids_.try_emplace(outer, static_cast<ValueId>(body_.values.size()));
    if (is_new) {
      body_.values.push_back({graph_.values[outer].type, ParameterSource{node_.inputs.size()}});
      node_.inputs.push_back(outer);
    }
    return it->second;
  }

  template <typename Map>
  void add_node(const Graph& from, const Node& node, const Map& input,
                std::map<ValueId, ValueId>& outputs) {
    Node copy{node.op, {}, {}, node.attributes};
    for (const ValueId id : node.inputs) copy.inputs.push_back(input(id));
    for (const ValueId id : node.outputs) {
      const auto fresh = static_cast<ValueId>(body_.values.size());
      body_.values.push_back({from.values[id].type, NodeSource{}});
      outputs[id] = fresh;
      copy.outputs.push_back(fresh);
    }
    body_.nodes.push_back(std::move(copy));
  }

  const Graph& graph_;
  Graph body_;
  Node node_;
  std::map<ValueId, ValueId> ids_;  // of the graph's values in the body
};

// The nodes with `node` for the members: by index, each as soon as its inputs have been placed.
std::vector<Node> ordered_with(Graph& graph, const Wiring& wiring, std::span<const size_t> members,
                               Node node) {
  const size_t count = graph.nodes.size();
  std::vector<size_t> unit(count);  // members count as the first of them
  for (size_t i = 0; i < count; ++i) unit[i] = i;
  for (const size_t i : members) unit[i] = members.front();
  std::vector<std::vector<size_t>> followers(count);
  std::vector<size_t> waits_for(count);
  for (size_t i = 0; i < count; ++i) {
    for (const size_t before : wiring.predecessors(i)) {
      if (unit[before] == unit[i]) continue;
      followers[unit[before]].push_back(unit[i]);
      ++waits_for[unit[i]];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (unit[i] == i && waits_for[i] == 0) ready.push(i);
  }
  std::vector<Node> ordered;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    ordered.push_back(i == members.front() ? std::move(node) : std::move(graph.nodes[i]));
    for (const size_t next : followers[i]) {
      if (--waits_for[next] == 0) ready.push(next);
    }
  }
  assert(ordered.size() + members.size() == count + 1);
  return ordered;
}

Status check_kernel(const Graph& graph, const Node& node) {
  const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
  ASSAY_CHECK(can_lower(body));
  if (std::ranges::find(body.nodes, OpKind::kLinear, &Node::op) == body.nodes.end()) return {};
  ASSAY_TRY(const Packing packing, product_packing(graph, node));
  if (packing.tile <= kMaxTile) return {};
  return bad_input("expected tiles of whole heads of at most {} columns, found {}", kMaxTile,
                   packing.tile);
}

}  // namespace

Result<Node> fused_node(const Graph& graph, const Wiring& wiring, std::span<const size_t> members) {
  BodyBuilder builder(graph);
  for (const size_t i : members) builder.add(graph.nodes[i]);
  const auto read_outside = [&](ValueId id) {
    return wiring.is_output(id) || !std::ranges::all_of(wiring.readers(id), [&](size_t reader) {
             return std::ranges::binary_search(members, reader);
           });
  };
  for (const size_t i : members) {
    const Node& node = graph.nodes[i];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (read_outside(node.outputs[k]) || written_cache(node, k)) {
        builder.add_output(node.outputs[k]);
      }
    }
  }
  Node node = builder.finish();
  if (node.outputs.empty()) return bad_input("expected a result that is read, found none");
  if (node.inputs.size() > kMaxInputs) {
    return bad_input("expected at most {} inputs, found {}", kMaxInputs, node.inputs.size());
  }
  ASSAY_CHECK(check_kernel(graph, node));
  return node;
}

size_t Fusion::fuse(std::span<const size_t> members, Node node) {
  for (const size_t i : members) rejected_.erase(graph_.nodes[i].outputs.front());
  const ValueId output = node.outputs.front();
  graph_.nodes = ordered_with(graph_, wiring_, members, std::move(node));
  wiring_ = Wiring(graph_);
  ++changes_;
  return *wiring_.producer(output);
}

void Fusion::reject(const Node& node, const Error& why) {
  rejected_[node.outputs.front()] = fmt::format("{}: {}", node_name(node), why.message);
}

PassOutcome Fusion::finish() {
  sweep(graph_);
  PassOutcome outcome{.changes = changes_, .rejected = {}};
  for (auto& [id, line] : rejected_) outcome.rejected.push_back(std::move(line));
  return outcome;
}

void keep_values(Graph& graph, const std::vector<bool>& keep) {
  std::vector<ValueId> ids(graph.values.size());
  std::vector<Value> kept;
  for (size_t id = 0; id < ids.size(); ++id) {
    if (!keep[id]) continue;
    ids[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[id]));
  }
  graph.values = std::move(kept);
  const auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& id : list) id = ids[id];
  };
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
  rename(graph.outputs);
}

void sweep(Graph& graph) {
  std::vector<bool> keep(graph.values.size());
  for (size_t id = 0; id < keep.size(); ++id) {
    keep[id] = !std::holds_alternative<NodeSource>(graph.values[id].source);
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) keep[id] = true;
  }
  keep_values(graph, keep);
}

std::string node_name(const Node& node) {
  return fmt::format("%{} {}", node.outputs.front(), op_name(node.op));
}

}  // namespace assay::engine
