// The passes run when the first compilation needs them; their graph is kept.
#include "engine/compiled/graph_compiler.h"

#include <algorithm>
#include <utility>

namespace assay::engine {

Result<std::unique_ptr<GraphCompiler>> GraphCompiler::create(Graph graph,
                                                             const CompilerOptions& options,
                                                             Device& device) {
  Graph nothing;  // no work for the passes: only their names are checked
  ASSAY_CHECK(run_passes(nothing, {.disabled = options.disabled_passes}));
  return std::unique_ptr<GraphCompiler>(new GraphCompiler(std::move(graph), options, device));
}

Status GraphCompiler::rewrite() {
  if (rewritten_) return {};
  auto graph = std::make_shared<Graph>(built_);
  ASSAY_TRY(
      passes_,
      run_passes(*graph, {.disabled = options_.disabled_passes, .verify = options_.verify_passes},
                 graph_passes(device_.layout())));
  rewritten_ = std::move(graph);
  return {};
}

Status GraphCompiler::load(const Weights& weights) {
  const Status rewritten = rewrite();
  ASSAY_CHECK(device_.prepare(rewritten ? *rewritten_ : Graph(), weights));
  return rewritten;
}

Result<std::shared_ptr<LoadedStep>> GraphCompiler::compile(const Specialization& dims) {
  std::erase_if(steps_, [](const auto& made) { return made.second.expired(); });
  const auto made = std::ranges::find(steps_, dims, [](const auto& one) { return one.first; });
  if (made != steps_.end()) return made->second.lock();
  ASSAY_CHECK(rewrite());
  const bool share =
      std::ranges::find(options_.disabled_passes, kPlanMemory) == options_.disabled_passes.end();
  ASSAY_TRY(StepPlan plan, make_step_plan(rewritten_, dims, share, device_.layout()));
  ASSAY_TRY(std::shared_ptr<LoadedStep> step,
            device_.load(std::make_shared<const StepPlan>(std::move(plan))));
  steps_.emplace_back(dims, step);
  return step;
}

}  // namespace assay::engine
