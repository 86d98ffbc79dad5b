// Products of few rows whose weights stream through shared memory.
#pragma once

#include <string>

#include "engine/codegen/cuda/cuda_product_shape.h"

namespace assay::engine {

// Of a shape that is streamed or on tensor cores: constants, which come before what every form has,
// and the entry assay_run, which comes behind it.
std::string cuda_streamed_constants(const CudaProductShape& shape, const ProductKernel& product,
                                    DType weight);
std::string cuda_streamed_run(const CudaProductShape& shape);

}  // namespace assay::engine
