// Products of a few rows on tensor cores, whose weights stream through shared memory.
#pragma once

#include <string>

#include "engine/codegen/cuda/cuda_product_shape.h"

namespace assay::engine {

// Texts for a shape of the form kTensor: its constants, which come before the text of every form,
// and the entry assay_run, which comes behind that.
std::string cuda_tensor_constants(const CudaProductShape& shape, const Kernel& kernel,
                                  const ProductKernel& product);
std::string cuda_tensor_run(const CudaProductShape& shape);
// Likewise of the form kWarpgroups, whose entries are assay_run and, where the rows aren't there as
// they are multiplied, assay_prologue.
std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product);
std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape);
// Lanes of a warp that take a row's columns in its epilogue.
int64_t cuda_tensor_epilogue_lanes(const CudaProductShape& shape);

}  // namespace assay::engine
