// Normalisation of rows: SIMD on one thread.
#pragma once

#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine::cpu {

// OpLibrary's operators of these names, for `rows` rows that follow each other.
void layer_norm(const float* x, const TensorView& weight, const TensorView& bias, double eps,
                float* out, int64_t rows, int64_t width);
void rms_norm(const float* x, const TensorView& weight, double eps, float* out, int64_t rows,
              int64_t width);

}  // namespace assay::engine::cpu
