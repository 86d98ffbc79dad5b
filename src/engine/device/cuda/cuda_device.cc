// Eager is the unfused graph with its sizes as symbols, a launch a node, never recorded.
#include "engine/device/cuda/cuda_device.h"

#include <cassert>
#include <utility>

namespace assay::engine {

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDeviceOptions& options) {
  ASSAY_TRY(auto driver, cuda::Driver::open(options.ordinal));
  return std::unique_ptr<CudaDevice>(new CudaDevice(options, std::move(driver)));
}

CudaDevice::CudaDevice(const CudaDeviceOptions& options, std::unique_ptr<cuda::Driver> driver)
    : options_(options),
      pool_(options.threads),
      driver_(std::move(driver)),
      space_(*driver_),
      memory_(space_),
      library_(*driver_, notes_) {}

Status CudaDevice::find_compiler() {
  if (kernels_) return {};
  ASSAY_TRY(Nvrtc nvrtc, Nvrtc::open());
  std::optional<KernelCache> cache = open_kernel_cache(options_.kernel_cache, notes_);
  kernels_ = std::make_unique<cuda::KernelStore>(*driver_, std::move(nvrtc), std::move(cache));
  return {};
}

void CudaDevice::use(const Weights& weights) {
  if (!weights_) weights_.emplace(weights, *driver_, pool_);
}

Result<std::unique_ptr<Executor>> CudaDevice::make_eager(Graph graph, const Weights& weights) {
  use(weights);
  ASSAY_CHECK(find_compiler());
  ASSAY_TRY(StepPlan plan,
            make_step_plan(std::make_shared<const Graph>(std::move(graph)), {}, true, layout()));
  ASSAY_TRY(auto step, cuda::CudaStep::load(std::move(plan), *kernels_, *weights_, library_,
                                            *driver_, counts_, false));
  return std::unique_ptr<Executor>(std::move(step));
}

Status CudaDevice::prepare(const Graph&, const Weights& weights) {
  use(weights);
  return find_compiler();
}

Result<std::unique_ptr<LoadedStep>> CudaDevice::load(std::shared_ptr<const StepPlan> plan) {
  assert(weights_);
  ASSAY_CHECK(find_compiler());
  ASSAY_TRY(auto step,
            cuda::CudaStep::load(*plan, *kernels_, *weights_, library_, *driver_, counts_, true));
  return std::unique_ptr<LoadedStep>(std::move(step));
}

}  // namespace assay::engine
