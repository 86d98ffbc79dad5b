// A graph without fused nodes: each one's body in its place.
#pragma once

#include "engine/graph/graph.h"

namespace assay::engine {

// The same outputs and the same cache writes, in the same order, of plain operators alone. Values
// get new ids: the sources first, then the nodes' outputs, in order. The graph must be valid.
Graph flatten(const Graph& graph);

}  // namespace assay::engine
