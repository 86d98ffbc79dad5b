// Producers, readers and orders, in one walk over the nodes each.
#include "engine/passes/wiring.h"

#include <algorithm>
#include <limits>
#include <map>

namespace assay::engine {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

}  // namespace

Wiring::Wiring(const Graph& graph)
    : producer_(graph.values.size(), kNone), is_output_(graph.values.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].outputs) producer_[id] = i;
  }
  for (const ValueId id : graph.outputs) is_output_[id] = true;
  index_readers(graph);
  order_nodes(graph);
}

std::optional<size_t> Wiring::producer(ValueId id) const {
  return producer_[id] == kNone ? std::nullopt : std::optional(producer_[id]);
}

void Wiring::index_readers(const Graph& graph) {
  std::vector<size_t>& begin = readers_.begin;
  begin.assign(graph.values.size() + 1, 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) ++begin[id + 1];
  }
  for (size_t id = 0; id < graph.values.size(); ++id) begin[id + 1] += begin[id];
  readers_.items.resize(begin.back());
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) readers_.items[next[id]++] = i;
  }
}

void Wiring::order_nodes(const Graph& graph) {
  std::map<ValueId, ValueId> cache_of;               // of views of caches
  std::map<ValueId, std::vector<size_t>> read_from;  // caches, by nodes so far
  std::vector<size_t>& items = predecessors_.items;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    predecessors_.begin.push_back(items.size());
    for (const ValueId id : node.inputs) {
      if (producer_[id] != kNone) items.push_back(producer_[id]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const auto cache = written_cache(node, k);
      if (!cache) continue;
      const std::vector<size_t>& before = read_from[node.inputs[*cache]];
      items.insert(items.end(), before.begin(), before.end());
    }
    for (const ValueId id : node.inputs) {
      const auto view = cache_of.find(id);
      const ValueId base = view == cache_of.end() ? id : view->second;
      if (!std::holds_alternative<CacheSource>(graph.values[base].source)) continue;
      read_from[base].push_back(i);
      if (node.op == OpKind::kView) cache_of[node.outputs[0]] = base;
    }
  }
  predecessors_.begin.push_back(items.size());
}

bool is_convex(const Wiring& wiring, std::span<const size_t> members) {
  const size_t first = *std::ranges::min_element(members);
  const size_t last = *std::ranges::max_element(members);
  std::vector<bool> is_member(last + 1), outside(last + 1);  // outside: others that follow one
  for (const size_t i : members) is_member[i] = true;
  for (size_t i = first; i <= last; ++i) {
    for (const size_t before : wiring.predecessors(i)) {
      if (is_member[i] && outside[before]) return false;
      if (!is_member[i] && (is_member[before] || outside[before])) outside[i] = true;
    }
  }
  return true;
}

}  // namespace assay::engine
