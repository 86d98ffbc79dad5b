// From a graph's node to a kernel: values become expressions of (row, column), rows being batch *
// q_len, and fused nodes are inlined.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/graph/graph.h"

namespace assay::engine {

// The kernel of one node, fused or plain, of a valid graph. Not for kView (an alias). A fused body
// is one of
//   at most one linear, row reductions and elementwise work before it, and elementwise work, one
//   split, view, rope and kv_write behind it;
//   elementwise work, row reductions, gathers, rope and kv_write, without any product or attention.
// bad_input names the part that can't be lowered, or a packing that doesn't fit the nodes behind
// the product. `layout`: of a product's weight whose source has no packing.
Result<Kernel> lower(const Graph& graph, const Node& node, const Specialization& dims,
                     TileLayout layout = TileLayout::kPanels);

// Checks that lower() takes a fused node with this body; the error says why not, for the passes'
// list of rejections.
Status can_lower(const Graph& body);

// The packing that suits a product node, plain or fused; lower() assumes it if the weight's source
// has none: the parts of a split behind it as segments, interleaved if two parts meet, in tiles of
// whole heads; in rows the halves of heads side by side if RoPE turns them.
Result<Packing> product_packing(const Graph& graph, const Node& node,
                                TileLayout layout = TileLayout::kPanels);

}  // namespace assay::engine
