// A plan as machine code on the processor: its kernels loaded, its weights packed, its values at
// fixed addresses, its step one schedule on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/codegen/cpu/kernel_library.h"
#include "engine/device/cpu/packed_weights.h"
#include "engine/device/cpu/schedule.h"
#include "engine/device/device.h"
#include "engine/memory/huge_memory.h"

namespace assay::engine {

class CpuStep final : public LoadedStep {
 public:
  // An environment_error has the compiler's whole text. All references must outlive the result.
  static Result<std::unique_ptr<CpuStep>> load(std::shared_ptr<const StepPlan> plan,
                                               KernelLibrary& library, PackedWeights& weights,
                                               ThreadPool& pool);

  Status reserve(const DimValues& dims) override;
  Code code() const override { return {.sha256 = code_sha256_, .forms = {}}; }
  Status run(const RunInputs& inputs, KvCache& cache) override;
  std::span<const float> output_f32(size_t index) const override;
  std::span<const int32_t> output_i32(size_t index) const override;

  size_t arena_bytes() const { return arena_.size_bytes(); }

 private:
  // Buffers of kernels that are bound anew in every run.
  struct CacheSlot {
    void** slot;
    CacheBinding cache;
  };
  struct ConstantSlot {
    void** slot;
    ConstantKind kind;
  };

  CpuStep(std::shared_ptr<const StepPlan> plan, std::string code_sha256, std::vector<Stage> stages,
          std::vector<DecodedTable*> tables, ThreadPool& pool);
  void find_slots();
  Status place_values(const DimValues& dims);
  Status bind_inputs(const RunInputs& inputs, KvCache& cache);
  std::byte* address(ValueId id) const;

  std::shared_ptr<const StepPlan> plan_;
  std::string code_sha256_;
  Schedule schedule_;
  std::vector<CacheSlot> cache_slots_;
  std::vector<ConstantSlot> constant_slots_;
  std::vector<DecodedTable*> tables_;  // read at the ids
  std::vector<KvView> views_;          // of the run at hand: keys and values of each layer
  HugeMemory arena_;
  ArenaPlan places_;
  std::optional<DimValues> reserved_;  // by the latest reserve()
  DimValues placed_;                   // the largest sizes that the arena has room for
  DimValues last_dims_;
};

}  // namespace assay::engine
