// Products of weights of 16 bits by warpgroups, with all that is fused behind them: the form
// kWarpgroups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {

// The shape of a product of so many rows; false: another form is faster, or it doesn't fit.
bool cuda_by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        CudaProductShape& shape);

// A block's shared memory, from a multiple of 1024 bytes on: bytes of the ring's stages, then of
// sums on their way to the epilogue, whose rows lie so many floats apart, then barriers.
constexpr int64_t cuda_warpgroup_ring_bytes(const CudaProductShape& shape) {
  return shape.laps * (shape.columns + shape.rows) * kCudaTensorRun * 2;
}
constexpr int64_t cuda_warpgroup_pitch(const CudaProductShape& shape) {
  return shape.round + (shape.rows_left ? 8 : 4);  // stores of two, or one, meet all banks
}
constexpr int64_t cuda_warpgroup_parts_bytes(const CudaProductShape& shape) {
  return shape.rows * cuda_warpgroup_pitch(shape) * 4;
}

// The kernel's constants, which come before the text of every form, and the entries that come
// behind it: assay_run and, where the rows aren't there as they are multiplied, assay_prologue.
std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product);
std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape);
// The matrices behind `weights` and `rows` of its Args, in a run of so many rows.
std::vector<CudaMatrix> cuda_warpgroup_matrices(const Kernel& kernel, const ProductKernel& product,
                                                const CudaProductShape& shape, int64_t rows);

}  // namespace assay::engine
