// Sizes of scratch memory that follow from a kernel.
#include "engine/codegen/cpu/kernel_functions.h"

#include "engine/codegen/cpu/cpu_attention.h"

namespace assay::engine {

int64_t kernel_scratch_floats(const Kernel& kernel, const DimValues& dims) {
  if (const auto* attention = std::get_if<AttentionKernel>(&kernel.body)) {
    return attention_scratch_floats(*attention, dims);
  }
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  if (product == nullptr) return 0;
  return kProductRows * (product->packing.tile + (product->has_prologue ? product->inputs : 0));
}

int64_t kernel_shared_floats(const Kernel& kernel, const DimValues& dims, int64_t threads) {
  const auto* attention = std::get_if<AttentionKernel>(&kernel.body);
  return attention != nullptr ? attention_shared_floats(*attention, dims, threads) : 0;
}

}  // namespace assay::engine
