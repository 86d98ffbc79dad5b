// The table of passes, and the runner that times, verifies and can undo each.
#include "engine/passes/pass.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.h"
#include "base/text/text.h"
#include "engine/passes/passes.h"
#include "engine/passes/verify.h"

namespace assay::engine {
namespace {

constexpr auto passes_with(PassOutcome (*pack_weights)(Graph&)) {
  return std::array{
      Pass{"move_last_rows",
           "values that only the last position needs are computed for that position alone",
           move_last_rows},
      Pass{"merge_products", "products of one input become one product and a split",
           merge_products},
      Pass{"fuse_norm", "a norm becomes the prologue of the product that alone reads it",
           fuse_norm},
      Pass{"fuse_epilogue", "column-wise operations after a product join its kernel",
           fuse_epilogue},
      Pass{"fuse_pointwise", "elementwise work, row reductions and gathers become row kernels",
           fuse_pointwise},
      Pass{"eliminate_dead", "removes nodes that no output and no cache write needs",
           eliminate_dead},
      Pass{"pack_weights", "weights of products are laid out for their kernels", pack_weights},
  };
}
constexpr auto kPanelPasses = passes_with(pack_weights_in_panels);
constexpr auto kRowPasses = passes_with(pack_weights_in_rows);

double seconds_since(int64_t start_ns) {
  return static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9;
}

Status check_names(const std::vector<std::string>& disabled, std::span<const Pass> passes) {
  std::vector<std::string> known = {std::string(kPlanMemory)};
  for (const Pass& pass : passes) known.emplace_back(pass.name);
  for (const std::string& name : disabled) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return bad_input("disabled pass: expected one of {}, found {}{}", join(known, ", "),
                     quoted_excerpt(name), nearest_hint(name, known));
  }
  return {};
}

// Runs one pass; `verifier`, if there is one, checks its graph.
Result<PassReport> run_pass(const Pass& pass, Graph& graph, std::optional<Verifier>& verifier) {
  PassReport report{.name = std::string(pass.name)};
  Graph rewritten = graph;
  const int64_t start = monotonic_now_ns();
  report.outcome = pass.run(rewritten);
  report.seconds = seconds_since(start);
  const int64_t verify_start = monotonic_now_ns();
  const Status status = verifier ? verifier->check(rewritten) : validate(rewritten);
  if (!status) return environment_error("pass {}: {}", pass.name, status.error().message);
  report.verified = verifier.has_value();
  if (verifier) report.verify_seconds = seconds_since(verify_start);
  graph = std::move(rewritten);
  return report;
}

}  // namespace

std::span<const Pass> graph_passes(TileLayout layout) {
  return layout == TileLayout::kRows ? kRowPasses : kPanelPasses;
}

Status check_pass_names(const std::vector<std::string>& names) {
  return check_names(names, graph_passes());
}

Result<std::vector<PassReport>> run_passes(Graph& graph, const PassOptions& options,
                                           std::span<const Pass> passes) {
  ASSAY_CHECK(check_names(options.disabled, passes));
  std::optional<Verifier> verifier;
  if (options.verify) verifier.emplace(graph, options.seed);
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    if (std::ranges::find(options.disabled, pass.name) != options.disabled.end()) {
      reports.push_back({.name = std::string(pass.name), .enabled = false});
      continue;
    }
    ASSAY_TRY(reports.emplace_back(), run_pass(pass, graph, verifier));
  }
  return reports;
}

}  // namespace assay::engine
