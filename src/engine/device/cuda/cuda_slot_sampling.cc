// All changes are in the stream's order: behind the runs before them, ahead of those that follow.
#include "engine/device/cuda/cuda_slot_sampling.h"

#include "engine/codegen/cuda/cuda_sampling.h"

namespace assay::engine::cuda {
namespace {

template <typename T>
::assay::Status allocate_zeros(Driver& driver, int64_t count, GpuBlock& block) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  ASSAY_TRY(block, GpuBlock::allocate(driver, bytes));
  return driver.fill(block.address(), 0, bytes);
}

}  // namespace

Result<std::unique_ptr<CudaSlotSampling>> CudaSlotSampling::create(Driver& driver,
                                                                   KernelStore& kernels,
                                                                   int64_t slots, int64_t rows,
                                                                   int64_t vocab) {
  std::unique_ptr<CudaSlotSampling> made(new CudaSlotSampling(driver, kernels, slots, vocab));
  ASSAY_CHECK(allocate_zeros<SampledSlot>(driver, slots, made->wishes_));
  ASSAY_CHECK(allocate_zeros<uint32_t>(driver, slots * vocab, made->counts_));
  ASSAY_CHECK(allocate_zeros<int32_t>(driver, slots * kCudaMostBiases, made->bias_ids_));
  ASSAY_CHECK(allocate_zeros<double>(driver, slots * kCudaMostBiases, made->bias_values_));
  ASSAY_CHECK(allocate_zeros<uint64_t>(driver, rows * vocab, made->weights_));
  return made;
}

int64_t CudaSlotSampling::most_biases() const {
  return kCudaMostBiases;
}

::assay::Status CudaSlotSampling::upload(int64_t slot) {
  const auto at = static_cast<size_t>(slot);
  return driver_.upload(wishes_.address() + at * sizeof(SampledSlot),
                        std::as_bytes(std::span(&slots_[at], 1)));
}

::assay::Status CudaSlotSampling::begin(int64_t slot, const SampledSlot& wishes,
                                        std::span<const std::pair<int32_t, double>> biases) {
  const auto at = static_cast<size_t>(slot), vocab = static_cast<size_t>(vocab_);
  std::vector<int32_t> ids;
  std::vector<double> values;
  for (const auto& [id, value] : biases) {
    ids.push_back(id);
    values.push_back(value);
  }
  const size_t first = at * static_cast<size_t>(kCudaMostBiases);
  ASSAY_CHECK(
      driver_.upload(bias_ids_.address() + first * sizeof(int32_t), std::as_bytes(std::span(ids))));
  ASSAY_CHECK(driver_.upload(bias_values_.address() + first * sizeof(double),
                             std::as_bytes(std::span(values))));
  if (wishes.penalties != 0) {
    ASSAY_CHECK(driver_.fill(counts_.address() + at * vocab * sizeof(uint32_t), 0,
                             vocab * sizeof(uint32_t)));
  }
  slots_[at] = wishes;
  slots_[at].biases = std::ssize(biases);
  return upload(slot);
}

::assay::Status CudaSlotSampling::set_prompt(int64_t slot, int64_t prompt_tokens, int64_t held_at) {
  SampledSlot& of = slots_[static_cast<size_t>(slot)];
  of.prompt_tokens = prompt_tokens;
  of.held_at = held_at;
  return upload(slot);
}

::assay::Status CudaSlotSampling::saw_prompt(int64_t slot, std::span<const int32_t> ids) {
  if (ids.empty()) return {};  // a launch of no blocks is an error
  if (see_ == nullptr) {
    ASSAY_TRY(const Module module, kernels_.load(print_cuda_seen(), 0));
    ASSAY_TRY(see_, driver_.function(module, "assay_run"));
  }
  if (seen_.size_bytes() < ids.size_bytes()) {
    ASSAY_CHECK(driver_.synchronize());  // a kernel may read the old one
    seen_ = GpuBlock();
    ASSAY_TRY(seen_, GpuBlock::allocate(driver_, ids.size_bytes()));
  }
  ASSAY_CHECK(driver_.upload(seen_.address(), std::as_bytes(ids)));
  struct {
    Address counts, ids, count;
  } arguments{counts_.address() + static_cast<Address>(slot * vocab_) * sizeof(uint32_t),
              seen_.address(), ids.size()};
  const auto blocks = static_cast<unsigned>((ids.size() + kCudaThreads - 1) / kCudaThreads);
  return driver_.launch(see_, {blocks, 1, 1}, kCudaThreads, &arguments, false);
}

}  // namespace assay::engine::cuda
