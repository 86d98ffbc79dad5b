// Who computes and who reads each value of a graph, and which nodes must come before which.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

// Indices are those of the graph's nodes at the time of the call.
struct Wiring {
  explicit Wiring(const Graph& graph);

  std::vector<std::optional<size_t>> producer;  // by value; absent for sources
  std::vector<std::vector<size_t>> readers;     // by value, in order; twice if it is read twice
  std::vector<bool> is_output;                  // by value: of the graph
  // By node: those that compute what it reads, and, if it writes a cache, those before it that read
  // the cache's old content.
  std::vector<std::vector<size_t>> predecessors;

  bool read_once(ValueId id) const { return !is_output[id] && readers[id].size() == 1; }
};

// Nodes that may become one: no path leads from a member through others back to a member.
bool is_convex(const Wiring& wiring, std::span<const size_t> members);

// Whether output `index` of the node is a cache as the node has written it.
bool writes_cache(const Node& node, size_t index);
bool is_weight(const Graph& graph, ValueId id);

}  // namespace assay::engine
