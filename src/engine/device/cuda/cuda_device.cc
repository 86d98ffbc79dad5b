// Eager is the unfused graph with its sizes as symbols, a launch a node, its outputs from the pool
// that caches come from, never recorded.
#include "engine/device/cuda/cuda_device.h"

#include <cassert>
#include <set>
#include <utility>

#include "base/text/text.h"
#include "engine/device/cuda/cuda_slot_sampling.h"
#include "engine/device/cuda/read_bandwidth.h"

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
      library_(*driver_, notes_, options.fp8) {
  driver_->tell_parts_by([this] {
    return std::vector<cuda::Driver::MemoryPart>{{"weights", packed_bytes()},
                                                 {"caches and eager outputs", memory_.used_bytes()},
                                                 {"kept for them", memory_.cached_bytes()}};
  });
}

DeviceInfo CudaDevice::info() const {
  const cuda::GpuInfo& gpu = driver_->info();
  return {.kind = "cuda",
          .name = gpu.name,
          .uuid = gpu.uuid,
          .compute_capability = gpu.compute_capability,
          .target = gpu.target,
          .driver = gpu.driver_name()};
}

std::optional<Toolchain> CudaDevice::toolchain() const {
  if (!kernels_) return std::nullopt;
  const Nvrtc& nvrtc = kernels_->nvrtc();
  std::vector<std::string> flags = split(Nvrtc::flags(), ' ');
  std::erase(flags, "");
  return Toolchain{.name = "nvrtc",
                   .version = nvrtc.version(),
                   .path = nvrtc.path(),
                   .sha256 = nvrtc.sha256(),
                   .target = driver_->info().target,
                   .processor = driver_->info().name,
                   .flags = std::move(flags),
                   .driver = driver_->info().driver_name()};
}

Result<std::optional<double>> CudaDevice::stop_timer_ms() {
  ASSAY_TRY(const double ms, driver_->stop_timer_ms());
  return std::optional(ms);
}

std::optional<uint64_t> CudaDevice::cache_bytes() const {
  return driver_->info().cache_bytes;
}

std::vector<LibraryShape> CudaDevice::library_products() const {
  std::set<LibraryShape> shapes;
  if (library_.opened() == nullptr) return {};
  for (const cuda::LtShape& one : library_.opened()->multiplied()) {
    shapes.insert({one.rows, one.outputs, one.inputs,
                   one.fp8 ? "e4m3" : std::string(dtype_name(one.dtype)),
                   std::string(dtype_name(one.out_dtype))});
  }
  return {shapes.begin(), shapes.end()};
}

void CudaDevice::note_products(bool noted) {
  if (cuda::CublasLt* library = library_.get()) library->note(noted);
}

Result<double> CudaDevice::measure_read_bandwidth() {
  return cuda::measure_read_bandwidth(*driver_);
}

Status CudaDevice::find_compiler() {
  if (kernels_) return {};
  ASSAY_TRY(Nvrtc nvrtc, Nvrtc::open());
  std::optional<KernelCache> cache = open_kernel_cache(options_.kernel_cache, notes_);
  library_.keep_choices_in(cache);
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
                                            *driver_, counts_, &memory_));
  return std::unique_ptr<Executor>(std::move(step));
}

Status CudaDevice::prepare(const Graph&, const Weights& weights) {
  use(weights);
  return find_compiler();
}

Result<std::unique_ptr<SlotSampling>> CudaDevice::make_sampling(int64_t slots, int64_t rows,
                                                                int64_t vocab) {
  ASSAY_CHECK(find_compiler());
  ASSAY_TRY(auto made, cuda::CudaSlotSampling::create(*driver_, *kernels_, slots, rows, vocab));
  return std::unique_ptr<SlotSampling>(std::move(made));
}

Result<std::unique_ptr<LoadedStep>> CudaDevice::load(std::shared_ptr<const StepPlan> plan) {
  assert(weights_);
  ASSAY_CHECK(find_compiler());
  ASSAY_TRY(auto step, cuda::CudaStep::load(*plan, *kernels_, *weights_, library_, *driver_,
                                            counts_, nullptr));
  return std::unique_ptr<LoadedStep>(std::move(step));
}

}  // namespace assay::engine
