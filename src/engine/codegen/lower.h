// From a graph's node to a kernel: values become expressions of (row, column), rows being batch *
// q_len, and what was fused is inlined.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/graph/graph.h"

namespace assay::engine {

// The kernel of one node, fused or plain, of a graph that run_passes has seen. Not for kView (an
// alias). A fused body is one of
//   at most one norm, one linear, and elementwise work, split, view, rope and kv_write behind it;
//   elementwise work, row reductions and gathers, without any product or attention.
// bad_input names what can't be lowered; can_lower() of a body is what the passes ask before they
// fuse.
Result<Kernel> lower(const Graph& graph, const Node& node, const Specialization& dims);

// Whether lower() takes a fused node with this body; the error says why not, for the passes' list
// of rejections.
Status can_lower(const Graph& body);

}  // namespace assay::engine
