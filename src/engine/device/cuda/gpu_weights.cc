// Weights are laid out on the host, a copy at a time, and uploaded.
#include "engine/device/cuda/gpu_weights.h"

#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/print_cuda.h"
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

Result<Fp8Weight> GpuWeights::fp8(const WeightSource& source, const WeightBinding& binding,
                                  KernelStore& kernels) {
  const auto& [in_memory, packing] = *binding.product;
  const TensorView& first = weights_.tensor(source.tensors.front());
  const int64_t inputs = first.shape[in_memory == WeightLayout::kOutIn ? 1 : 0];
  const int64_t columns = packed_elements(packing, inputs) / Packing::padded_inputs(inputs);
  const Fp8Rows places = fp8_rows(columns, inputs);
  GpuBlock& block = rounded_[{source.tensors, to_string(packing)}];
  const auto scales_at = static_cast<size_t>(places.scales_at);
  if (block.address() == 0) {
    struct {
      Address from, codes, scales;
    } arguments{};
    ASSAY_TRY(arguments.from, address(source, binding));
    ASSAY_TRY(const Module module, kernels.load(print_fp8_weight(first.dtype, inputs), false));
    ASSAY_TRY(const Function function, driver_.function(module, "assay_round"));
    const auto bytes = static_cast<size_t>(places.wide_at);
    ASSAY_TRY(GpuBlock made, GpuBlock::allocate(driver_, bytes));
    arguments.codes = made.address();
    arguments.scales = made.address() + scales_at;
    ASSAY_CHECK(driver_.launch(function, {static_cast<unsigned>(columns), 1, 1}, kCudaThreads,
                               &arguments, false));
    bytes_ += bytes;
    block = std::move(made);
  }
  return Fp8Weight{block.address(), block.address() + scales_at};
}

}  // namespace assay::engine::cuda
