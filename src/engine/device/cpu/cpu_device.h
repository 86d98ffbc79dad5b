// The processor as a device: a pool of threads, the system compiler's shared objects, and steps
// whose kernels the threads share, one kernel after the other.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/thread_pool.h"
#include "engine/codegen/cpu/kernel_library.h"
#include "engine/device/cpu/packed_weights.h"
#include "engine/device/device.h"
#include "engine/ops/cpu/block_linear.h"

namespace assay::engine {

struct CpuDeviceOptions {
  size_t threads = 1;
  bool reference_ops = false;  // the slow operators, for tests
  // The reason why the compiler is not to be tried, found by an earlier trial; empty: it is.
  std::string no_compiler = {};
  // The processor's compiler, as in CompileOptions.
  std::optional<CpuCompiler> compiler = {};
  // Kernels on disk. Absent: each process compiles its own.
  std::optional<std::filesystem::path> kernel_cache = {};
  bool keeps_weights = false;  // as in CompilerOptions
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options);

  DeviceInfo info() const override { return {.kind = "cpu"}; }
  BufferPool& memory() override { return memory_; }
  TileLayout layout() const override { return TileLayout::kPanels; }
  DType cache_type(DType) const override { return DType::kF32; }
  size_t threads() const override { return pool_.size(); }

  Result<std::unique_ptr<Executor>> make_eager(Graph graph, const Weights& weights) override;
  Status prepare(const Graph& graph, const Weights& weights) override;
  Result<std::unique_ptr<LoadedStep>> load(std::shared_ptr<const StepPlan> plan) override;

  std::optional<Toolchain> toolchain() const override;
  CompileStats stats() const override { return library_ ? library_->stats() : CompileStats(); }
  uint64_t packed_bytes() const override { return weights_ ? weights_->bytes() : 0; }
  uint64_t found_packed_bytes() const override { return weights_ ? weights_->found_bytes() : 0; }
  const std::vector<std::string>& notes() const override { return notes_; }
  Result<double> measure_read_bandwidth() override;
  std::optional<uint64_t> cache_bytes() const override;

 private:
  Status find_compiler();
  PackedWeights& packed(const Weights& weights);

  CpuDeviceOptions options_;
  ThreadPool pool_;
  BufferPool memory_;
  std::unique_ptr<OpLibrary> ops_;
  cpu::BlockLinear block_linear_{pool_};
  std::optional<PackedWeights> weights_;  // of the model that was loaded last
  std::unique_ptr<KernelLibrary> library_;
  std::vector<std::string> notes_;
};

}  // namespace assay::engine
