// Products of a few rows on tensor cores, whose weights stream through shared memory.
#pragma once

#include <string>

#include "engine/codegen/cuda/cuda_product_shape.h"

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
// Lanes of a warp that take a row's columns in its epilogue.
int64_t cuda_tensor_epilogue_lanes(const CudaProductShape& shape);

}  // namespace assay::engine
