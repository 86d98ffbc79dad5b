// The passes, one file each; pass.h has their purposes, graph_passes() their order.
// Each takes a valid graph and leaves a valid one.
#pragma once

#include "engine/passes/pass.h"

namespace assay::engine {

PassOutcome move_last_rows(Graph& graph);
PassOutcome merge_products(Graph& graph);
PassOutcome fuse_norm(Graph& graph);
PassOutcome fuse_epilogue(Graph& graph);
PassOutcome fuse_pointwise(Graph& graph);
PassOutcome eliminate_dead(Graph& graph);
PassOutcome pack_weights_in_panels(Graph& graph);
PassOutcome pack_weights_in_rows(Graph& graph);

}  // namespace assay::engine
