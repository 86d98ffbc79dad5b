// The one place that knows every device.
#include "base/process/thread_pool.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/serving/model.h"

namespace assay::engine {

Result<std::shared_ptr<Device>> open_device(const ModelOptions& options) {
  const auto& kernel_cache = options.compiler.kernel_cache;
  const size_t threads = options.threads == 0 ? available_cpus() : options.threads;
  if (!options.gpu) {
    return std::make_shared<CpuDevice>(
        CpuDeviceOptions{.threads = threads,
                         .reference_ops = options.reference_ops,
                         .no_compiler = options.compiler.no_compiler,
                         .compiler = options.compiler.compiler,
                         .kernel_cache = kernel_cache,
                         .keeps_weights = options.compiler.keeps_weights});
  }
  return CudaDevice::open(
      {.ordinal = *options.gpu,
       .threads = threads,
       .kernel_cache = kernel_cache,
       .fp8 = {.fast_sums = options.fp8_fast_sums, .always = options.fp8_always}});
}

}  // namespace assay::engine
