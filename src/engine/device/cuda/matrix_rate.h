// The speed at which a GPU multiplies matrices through its library, measured: the limit of a
// prompt.
#pragma once

#include "base/result.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/driver.h"

namespace assay::engine::cuda {

// Operations a second, the best of some products of random square matrices of that type; of 8192
// rows on a GPU that a smaller one takes no millisecond of.
Result<double> measure_matrix_rate(Driver& driver, CublasLt& library, DType dtype);

}  // namespace assay::engine::cuda
