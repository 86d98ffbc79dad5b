// The product in a node, plain or fused.
#pragma once

#include <optional>

#include "engine/graph/graph.h"

namespace assay::engine {

struct ProductNode {
  ValueId weight = 0;  // of the graph that has the node
  WeightLayout layout = WeightLayout::kOutIn;
};

// Absent for nodes without one.
std::optional<ProductNode> product_of(const Node& node);

}  // namespace assay::engine
