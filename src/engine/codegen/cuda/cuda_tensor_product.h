// Products of a few rows on tensor cores, whose weights stream through shared memory.
#pragma once

#include <string>
#include <vector>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {

// Texts for a shape of the forms kTensor and kOneRow: its constants, which come before the text of
// every form, and the entry assay_run, which comes behind that.
std::string cuda_tensor_constants(const CudaProductShape& shape, const Kernel& kernel,
                                  const ProductKernel& product);
std::string cuda_tensor_run(const CudaProductShape& shape, const Kernel& kernel,
                            const ProductKernel& product);
// Part of it: what becomes of the sums of all warps.
std::string cuda_finish_text(const CudaProductShape& shape);
// Parts of it for weights in blocks, behind cuda_slot_text(). Up to 8 rows multiply codes: what all
// such kernels have, then the slots of the form kTensor, or the entry of the form kOneRow. More
// rows multiply values: slots of the form kTensor. Both read slots alike.
std::string cuda_codes_text(WeightFormat format);
std::string cuda_block_slots_text();
std::string cuda_one_row_text();
std::string cuda_block_values_text();
std::string cuda_slot_reads_text();
// The shape of a product of so many rows by warpgroups; false: another form is faster, or it
// doesn't fit.
bool cuda_by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        CudaProductShape& shape);
// The distance of two rows' sums in shared memory, in floats, and bytes of all.
constexpr int64_t cuda_warpgroup_pitch(const CudaProductShape& shape) {
  return shape.round + (shape.rows_left ? 8 : 4);  // stores of two, or one, meet all banks
}
int64_t cuda_warpgroup_parts_bytes(const CudaProductShape& shape);
// Likewise of the form kWarpgroups, whose entries are assay_run and, where the rows aren't there as
// they are multiplied, assay_prologue.
std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product);
std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape);
// The matrices behind `weights` and `rows` of its Args, in a run of so many rows.
std::vector<CudaMatrix> cuda_warpgroup_matrices(const Kernel& kernel, const ProductKernel& product,
                                                const CudaProductShape& shape, int64_t rows);
// Lanes of a warp that take a row's columns in its epilogue.
int64_t cuda_tensor_epilogue_lanes(const CudaProductShape& shape);

}  // namespace assay::engine
