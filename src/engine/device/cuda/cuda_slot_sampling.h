// The tables of slots whose tokens a GPU draws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/cuda/gpu_memory.h"
#include "engine/device/cuda/kernel_store.h"
#include "engine/device/slot_sampling.h"

namespace assay::engine::cuda {

class CudaSlotSampling final : public SlotSampling {
 public:
  // For runs of so many rows at most. References must outlive the object.
  static Result<std::unique_ptr<CudaSlotSampling>> create(Driver& driver, KernelStore& kernels,
                                                          int64_t slots, int64_t rows,
                                                          int64_t vocab);

  int64_t most_biases() const override;
  ::assay::Status begin(int64_t slot, const SampledSlot& wishes,
                        std::span<const std::pair<int32_t, double>> biases) override;
  ::assay::Status set_prompt(int64_t slot, int64_t prompt_tokens, int64_t held_at) override;
  ::assay::Status saw_prompt(int64_t slot, std::span<const int32_t> ids) override;

  // Members of print_cuda_sampling()'s Args from `wishes` on.
  using Arguments = std::array<Address, 5>;
  Arguments arguments() const {
    return {wishes_.address(), counts_.address(), bias_ids_.address(), bias_values_.address(),
            weights_.address()};
  }

 private:
  CudaSlotSampling(Driver& driver, KernelStore& kernels, int64_t slots, int64_t vocab)
      : driver_(driver), kernels_(kernels), vocab_(vocab), slots_(static_cast<size_t>(slots)) {}
  ::assay::Status upload(int64_t slot);

  Driver& driver_;
  KernelStore& kernels_;
  int64_t vocab_;
  std::vector<SampledSlot> slots_;
  GpuBlock wishes_, counts_, bias_ids_, bias_values_, weights_;
  GpuBlock seen_;           // ids of a prompt's part
  Function see_ = nullptr;  // null: not needed yet
};

}  // namespace assay::engine::cuda
