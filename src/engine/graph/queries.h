// Queries that passes, plans and executors make of a valid graph: the value that a view shows, the
// weight of a node's product, the caches that are written.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

bool is_weight(const Graph& graph, ValueId id);

// For each value the one whose memory it lies in: for a view that of the value it shows, for any
// other itself.
std::vector<ValueId> view_bases(const Graph& graph);

// The product in a node, plain or fused.
struct ProductNode {
  size_t weight = 0;  // of the node's inputs, the one that is the weight
  WeightLayout layout = WeightLayout::kOutIn;
};
std::optional<ProductNode> product_of(const Node& node);  // absent for nodes without one

// The node's input that holds the cache which its output `index` is after the write; absent if that
// output is no written cache. Writes inside fused nodes count.
std::optional<size_t> written_cache(const Node& node, size_t index);

// For each value the layer's cache that it is, before its write or after; absent if it is none.
std::vector<std::optional<CacheSource>> cache_values(const Graph& graph);

}  // namespace assay::engine
