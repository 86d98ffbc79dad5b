// What may stand around a product in one kernel, and how its weight is laid out for it.
#pragma once

#include <span>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/passes/wiring.h"

namespace assay::engine {

constexpr int64_t kMaxTile = 512;

// The packing that a body with exactly one product asks for:
//   segments: the widths of the split that follows the product, else all of its outputs;
//   tile: a panel, or the least multiple of one that is also one of head_dim where rope or kv_write
//   follow, so that no head lies in two tiles;
//   interleaved, with a tile of two panels: two equal segments that elementwise work combines.
// bad_input if the body isn't of the form norm, product, epilogue that kernels of products have:
//   before the product at most last_rows and then a norm;
//   after it a split of all of it, then elementwise work column by column, views that keep rows,
//   rope and kv_write of whole segments; a tile of at most kMaxTile columns.
// Elements of values that the product doesn't reach may come in by any input of their own type.
Result<Packing> product_packing(const Graph& body);

// fused_node() of members with one product, if that can be packed and lowered.
Result<Node> fused_product(const Graph& graph, const Wiring& wiring,
                           std::span<const size_t> members);

}  // namespace assay::engine
