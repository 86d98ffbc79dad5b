// The producer and the readers of each value of a graph, and the order that nodes need.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/queries.h"

namespace assay::engine {

// Indices are those of the graph's nodes at the time of the call. Passes make one for each rewrite:
// it is a handful of flat arrays.
class Wiring {
 public:
  explicit Wiring(const Graph& graph);

  size_t nodes() const { return predecessors_.begin.size() - 1; }
  std::optional<size_t> producer(ValueId id) const;  // absent for sources
  // Nodes in order; a node that reads the value twice is there twice.
  std::span<const size_t> readers(ValueId id) const { return readers_[id]; }
  bool is_output(ValueId id) const { return is_output_[id]; }  // of the graph
  bool read_once(ValueId id) const { return !is_output_[id] && readers_[id].size() == 1; }
  // The nodes that compute the node's inputs, and, if it writes a cache, earlier readers of the
  // cache's old content.
  std::span<const size_t> predecessors(size_t node) const { return predecessors_[node]; }

 private:
  // Lists behind each other.
  struct Lists {
    std::vector<size_t> begin;  // of each, and the end of the last
    std::vector<size_t> items;
    std::span<const size_t> operator[](size_t i) const {
      return std::span(items).subspan(begin[i], begin[i + 1] - begin[i]);
    }
  };
  void index_readers(const Graph& graph);
  void order_nodes(const Graph& graph);

  std::vector<size_t> producer_;  // by value; kNone for sources
  std::vector<bool> is_output_;
  Lists readers_;       // by value
  Lists predecessors_;  // by node
};

// Nodes that may become one: no path leads from a member through others back to a member.
bool is_convex(const Wiring& wiring, std::span<const size_t> members);

}  // namespace assay::engine
