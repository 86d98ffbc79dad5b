// A GPU as a device: the driver, NVRTC, and steps as CUDA graphs.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/thread_pool.h"
#include "engine/device/cuda/cuda_step.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/device.h"

namespace assay::engine {

struct CudaDeviceOptions {
  int ordinal = 0;     // the driver's number of the GPU
  size_t threads = 1;  // of the host, which lay weights out
  // Kernels on disk. Absent: each process compiles its own.
  std::optional<std::filesystem::path> kernel_cache = {};
  cuda::Fp8Wishes fp8 = {};
};

class CudaDevice final : public Device {
 public:
  // environment_error: no driver, no such GPU. NVRTC is looked for when the first step needs it.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDeviceOptions& options);

  DeviceInfo info() const override;
  BufferPool& memory() override { return memory_; }
  TileLayout layout() const override { return TileLayout::kRows; }
  DType cache_type(DType weights) const override { return weights; }
  bool prefers_few_sizes() const override { return true; }
  size_t threads() const override { return pool_.size(); }

  Result<std::unique_ptr<Executor>> make_eager(Graph graph, const Weights& weights) override;
  Status prepare(const Graph& graph, const Weights& weights) override;
  Result<std::unique_ptr<LoadedStep>> load(std::shared_ptr<const StepPlan> plan) override;

  Result<std::unique_ptr<SlotSampling>> make_sampling(int64_t slots, int64_t rows,
                                                      int64_t vocab) override;

  std::optional<Toolchain> toolchain() const override;
  CompileStats stats() const override { return kernels_ ? kernels_->stats() : CompileStats(); }
  std::optional<LaunchCounts> launches() const override { return counts_; }
  std::vector<LibraryShape> library_products() const override;
  void note_products(bool noted) override;
  std::vector<TypeContest> type_contests() const override { return library_.contests(); }
  uint64_t packed_bytes() const override { return weights_ ? weights_->bytes() : 0; }
  const std::vector<std::string>& notes() const override { return notes_; }

  Status start_timer() override { return driver_->start_timer(); }
  Result<std::optional<double>> stop_timer_ms() override;
  Result<double> measure_read_bandwidth() override;
  std::optional<uint64_t> cache_bytes() const override;
  void enter_thread() override { driver_->enter_thread(); }
  DeviceFault fault() const override { return driver_->fault(); }
  void forget_fault() override { driver_->forget_fault(); }

  cuda::Driver& driver() { return *driver_; }

 private:
  CudaDevice(const CudaDeviceOptions& options, std::unique_ptr<cuda::Driver> driver);
  Status find_compiler();
  void use(const Weights& weights);

  CudaDeviceOptions options_;
  ThreadPool pool_;
  std::unique_ptr<cuda::Driver> driver_;  // before all that it owns
  cuda::GpuMemory space_;
  BufferPool memory_;
  std::optional<cuda::GpuWeights> weights_;  // since the first use()
  std::unique_ptr<cuda::KernelStore> kernels_;
  LaunchCounts counts_;
  std::vector<std::string> notes_;
  cuda::LazyCublasLt library_;
};

}  // namespace assay::engine
