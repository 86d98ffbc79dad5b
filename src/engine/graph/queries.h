// Questions about a valid graph that passes, plans and executors ask: what a view shows, where a
// node's product has its weight, which caches are written.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

bool is_weight(const Graph& graph, ValueId id);

// By value: the value whose memory it lies in. A view's is that of what it shows, any other's its
// own.
std::vector<ValueId> view_bases(const Graph& graph);

// The product in a node, plain or fused.
struct ProductNode {
  size_t weight = 0;  // of the node's inputs, the one that is the weight
  WeightLayout layout = WeightLayout::kOutIn;
};
std::optional<ProductNode> product_of(const Node& node);  // absent for nodes without one

// The node's input that holds the cache which its output `index` is after the write; absent where
// that output is no written cache. Writes inside fused nodes count.
std::optional<size_t> written_cache(const Node& node, size_t index);

// By value: the layer's cache that it is, before its write or after; absent for all other values.
std::vector<std::optional<CacheSource>> cache_values(const Graph& graph);

}  // namespace assay::engine
