// The compiler is looked for when the first step needs it.
#include "engine/device/cpu/cpu_device.h"

#include <cassert>
#include <utility>

#include "engine/device/cpu/bandwidth.h"
#include "engine/device/cpu/cpu_step.h"
#include "engine/device/cpu/eager_executor.h"
#include "engine/graph/queries.h"

namespace assay::engine {

CpuDevice::CpuDevice(const CpuDeviceOptions& options)
    : options_(options),
      pool_(options.threads),
      ops_(options.reference_ops ? make_reference_ops() : make_cpu_ops(pool_)) {}

Status CpuDevice::find_compiler() {
  if (library_) return {};
  if (!options_.no_compiler.empty()) return environment_error("{}", options_.no_compiler);
  ASSAY_TRY(CpuCompiler compiler,
            options_.compiler ? options_.compiler->completed() : CpuCompiler::find());
  std::optional<KernelCache> cache = open_kernel_cache(options_.kernel_cache, notes_);
  library_ = std::make_unique<KernelLibrary>(std::move(compiler), std::move(cache), pool_.size());
  return {};
}

std::optional<Toolchain> CpuDevice::toolchain() const {
  if (!library_) return std::nullopt;
  const CpuCompiler& compiler = library_->compiler();
  return Toolchain{.name = "c++",
                   .version = compiler.version,
                   .path = compiler.path.string(),
                   .sha256 = compiler.sha256,
                   .target = compiler.target,
                   .processor = compiler.processor,
                   .flags = compiler.flags,
                   .driver = {}};
}

Result<double> CpuDevice::measure_read_bandwidth() {
  return engine::measure_read_bandwidth(pool_);
}

std::optional<uint64_t> CpuDevice::cache_bytes() const {
  return last_level_cache_bytes();
}

PackedWeights& CpuDevice::packed(const Weights& weights) {
  if (!weights_ || !weights_->is_of(weights)) weights_.emplace(weights, pool_);
  return *weights_;
}

Result<std::unique_ptr<Executor>> CpuDevice::make_eager(Graph graph, const Weights& weights) {
  EagerExecutor::BlockProducts blocks;
  if (!options_.reference_ops) blocks = {&block_linear_, &packed(weights)};
  return std::make_unique<EagerExecutor>(std::move(graph), weights, *ops_, memory_, blocks);
}

Status CpuDevice::prepare(const Graph& graph, const Weights& weights) {
  packed(weights);
  ASSAY_CHECK(find_compiler());
  std::vector<ProductWeight> products;
  for (const Node& node : graph.nodes) {
    const auto product = product_of(node);
    if (!product) continue;
    const auto& weight = std::get<WeightSource>(graph.values[node.inputs[product->weight]].source);
    if (weight.packing) products.push_back({weight, product->layout, *weight.packing});
  }
  std::optional<WeightCache> cache;
  if (options_.keeps_weights && options_.kernel_cache) {
    auto opened = WeightCache::open(*options_.kernel_cache);
    if (opened) {
      cache = *std::move(opened);
    } else {
      notes_.push_back("packed weights aren't kept: " + opened.error().message);
    }
  }
  return weights_->pack(products, cache ? &*cache : nullptr, notes_);
}

Result<std::unique_ptr<LoadedStep>> CpuDevice::load(std::shared_ptr<const StepPlan> plan) {
  assert(weights_);
  ASSAY_CHECK(find_compiler());
  ASSAY_TRY(auto step, CpuStep::load(std::move(plan), *library_, *weights_, pool_));
  return std::unique_ptr<LoadedStep>(std::move(step));
}

}  // namespace assay::engine
