// Sizes that follow from a kernel.
#include "engine/codegen/kernel.h"

#include <algorithm>

#include "engine/codegen/cpu_attention.h"

namespace assay::engine {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

int64_t tile_count(const Packing& packing) {
  if (packing.interleaved) return ceil_div(packing.segments[0], packing.tile / 2);
  int64_t tiles = 0;
  for (const int64_t width : packing.segments) tiles += ceil_div(width, packing.tile);
  return tiles;
}

int64_t packed_elements(const Packing& packing, int64_t inputs) {
  return tile_count(packing) * packing.tile * Packing::padded_inputs(inputs);
}

int64_t kernel_scratch_floats(const Kernel& kernel, const DimValues& dims, int64_t) {
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
