// Rewrites of a graph into an equivalent one with fewer, larger kernels; each named, switchable,
// timed and verified against the graph it was given.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"

namespace assay::engine {

// A pass's changes and refusals.
struct PassOutcome {
  int64_t changes = 0;
  // One line for each rewrite that would have fitted but was refused: "%31 rope: expected ...,
  // found ...". Values are numbered as in the graph that the pass was given. Kept in the evidence.
  std::vector<std::string> rejected = {};
};

struct Pass {
  std::string_view name;     // as --disable-pass and disabled_passes have it: "fuse_norm"
  std::string_view summary;  // one line for people
  PassOutcome (*run)(Graph& graph);
};

// In the order in which they run:
//   move_last_rows    last_rows before operators of which no other row is read
//   merge_products    linear nodes of one input (q, k, v; gate, up) -> one, and a split
//   fuse_norm         a norm into the product that alone reads it, as its prologue
//   fuse_epilogue     the nodes behind a product (split, view, rope, kv_write, activate, multiply,
//                     add) into it, and last_rows of its operands
//   fuse_pointwise    the elementwise work, row reductions and gathers left over into row kernels
//   eliminate_dead    values that no output depends on
//   pack_weights      a Packing for the weight of every product, in the layout of the device
// With every pass off the graph still runs: each node is then a kernel of its own.
std::span<const Pass> graph_passes(TileLayout layout = TileLayout::kPanels);

// Not a pass over the graph, but switched off by the same list: plan_memory.h.
inline constexpr std::string_view kPlanMemory = "plan_memory";

struct PassOptions {
  std::vector<std::string> disabled = {};
  bool verify = false;  // run the graph before and after each pass on random inputs, and compare
  uint64_t seed = 1;
};

struct PassReport {
  std::string name;
  bool enabled = true;
  double seconds = 0;         // of the pass alone
  double verify_seconds = 0;  // of its verification
  bool verified = false;
  PassOutcome outcome = {};
};

// bad_input for a name that neither a pass nor "plan_memory" has, with the nearest.
Status check_pass_names(const std::vector<std::string>& names);

// Runs the passes on a valid graph. bad_input for a name in `disabled` that is neither a pass's nor
// kPlanMemory, with the nearest. An environment_error that names the pass if its result isn't valid
// or computes something else: the graph is then the one before that pass. `passes`: others than the
// usual ones, for tests.
Result<std::vector<PassReport>> run_passes(Graph& graph, const PassOptions& options,
                                           std::span<const Pass> passes = graph_passes());

}  // namespace assay::engine
