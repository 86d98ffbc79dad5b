// Each step happens when the first compilation needs it, and is kept.
#include "engine/session/graph_compiler.h"

#include <algorithm>
#include <utility>

#include "engine/codegen/kernel_cache.h"
#include "engine/session/product_nodes.h"

namespace assay::engine {

Result<std::unique_ptr<GraphCompiler>> GraphCompiler::create(Graph graph,
                                                             const CompileOptions& options,
                                                             const Weights& weights,
                                                             ThreadPool& pool) {
  Graph nothing;  // no work for the passes: only their names are checked
  ASSAY_CHECK(run_passes(nothing, {.disabled = options.disabled_passes}));
  return std::unique_ptr<GraphCompiler>(
      new GraphCompiler(std::move(graph), options, weights, pool));
}

Status GraphCompiler::find_compiler() {
  if (library_) return {};
  if (!options_.no_compiler.empty()) return environment_error("{}", options_.no_compiler);
  ASSAY_TRY(CpuCompiler compiler, CpuCompiler::find());
  std::optional<KernelCache> cache;
  if (options_.kernel_cache) {
    auto opened = KernelCache::open(*options_.kernel_cache);
    if (opened) {
      cache = std::move(opened).value();
    } else {
      notes_.push_back("kernel cache: not used: " + opened.error().message);
    }
  }
  library_ = std::make_unique<KernelLibrary>(std::move(compiler), std::move(cache), pool_.size());
  return {};
}

Status GraphCompiler::rewrite() {
  if (rewritten_) return {};
  auto graph = std::make_shared<Graph>(built_);
  ASSAY_TRY(passes_, run_passes(*graph, {.disabled = options_.disabled_passes,
                                         .verify = options_.verify_passes}));
  rewritten_ = std::move(graph);
  return {};
}

Status GraphCompiler::load() {
  ASSAY_CHECK(find_compiler());
  ASSAY_CHECK(rewrite());
  for (const Node& node : rewritten_->nodes) {
    const auto product = product_of(node);
    if (!product) continue;
    const auto& weight = std::get<WeightSource>(rewritten_->values[product->weight].source);
    if (weight.packing) ASSAY_CHECK(weights_.panels(weight, product->layout, *weight.packing));
  }
  return {};
}

Result<std::unique_ptr<CompiledGraph>> GraphCompiler::compile(const Specialization& dims) {
  ASSAY_CHECK(find_compiler());
  ASSAY_CHECK(rewrite());
  const bool share =
      std::ranges::find(options_.disabled_passes, kPlanMemory) == options_.disabled_passes.end();
  return CompiledGraph::build(rewritten_, dims, *library_, weights_, pool_, share);
}

}  // namespace assay::engine
