// Weights are laid out on the host, a copy at a time, and uploaded.
#include "engine/device/cuda/gpu_weights.h"

#include "engine/device/cpu/packed_weights.h"

namespace assay::engine::cuda {

Result<Address> GpuWeights::address(const WeightSource& source, const WeightBinding& binding) {
  const std::string layout = binding.product ? to_string(binding.product->packing) : "";
  GpuBlock& copy = copies_[{source.tensors, layout}];
  if (copy.address() != 0) return copy.address();
  PackedWeights staging(weights_, pool_);
  const std::byte* data = nullptr;
  size_t bytes = 0;
  if (binding.product) {
    const auto& [in_memory, packing] = *binding.product;
    ASSAY_TRY(data, staging.product(source, in_memory, packing));
    const TensorView& first = weights_.tensor(source.tensors.front());
    const int64_t inputs = first.shape[in_memory == WeightLayout::kOutIn ? 1 : 0];
    bytes = static_cast<size_t>(packed_elements(packing, inputs)) * dtype_size_bytes(first.dtype);
  } else {
    ASSAY_TRY(data, staging.plain(source));
    for (const std::string& name : source.tensors) bytes += weights_.tensor(name).size_bytes();
  }
  ASSAY_TRY(GpuBlock block, GpuBlock::allocate(driver_, bytes));
  ASSAY_CHECK(driver_.upload(block.address(), {data, bytes}));
  ASSAY_CHECK(driver_.synchronize());  // before the staging goes
  bytes_ += bytes;
  copy = std::move(block);
  return copy.address();
}

}  // namespace assay::engine::cuda
