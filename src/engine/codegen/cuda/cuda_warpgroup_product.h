// Products of weights of 16 bits by warpgroups, with all that is fused behind them: the form
// kWarpgroups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {

// The shape of a product of so many rows; false: another form is faster, or it doesn't fit, and
// `shape` is as it was.
bool cuda_by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        CudaProductShape& shape);
// The time of a product in 16 bits beside which another one pays: `library_us`, what the library's
// took without the kernel behind it; or less, where this form is faster, by the share of both
// that the model which chooses the form expects.
double cuda_beside_library_us(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                              double library_us);

// A block's shared memory, from a multiple of 1024 bytes on: the ring's stages; then sums on their
// way to the epilogue, in rows that lie so many floats apart or, of a cluster's blocks, in a slot
// for each eight columns of a warp's 16 rows; then two barriers a stage, and one for such sums.
constexpr int64_t kCudaWarpgroupSlot = 528;  // bytes: lanes' sums as they hold them, and padding
constexpr int64_t cuda_warpgroup_ring_bytes(const CudaProductShape& shape) {
  return shape.laps * (shape.columns + shape.rows) * kCudaTensorRun * 2;
}
constexpr int64_t cuda_warpgroup_pitch(const CudaProductShape& shape) {
  return shape.round + 8;  // stores of two meet all banks
}
constexpr int64_t cuda_warpgroup_parts_bytes(const CudaProductShape& shape) {
  return shape.splits > 1 ? shape.rows / 16 * (shape.columns / 8) * kCudaWarpgroupSlot
                          : shape.rows * cuda_warpgroup_pitch(shape) * 4;
}
constexpr int64_t cuda_warpgroup_barriers_bytes(int64_t stages) {
  return (stages + 1) * 16;
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
