// Elementwise kernels, rotation and argmax: SIMD on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model/config.h"
#include "engine/tensor.h"

namespace assay::engine::cpu {

// Outputs may be one of the inputs.
void add(const float* a, const float* b, float* out, int64_t count);
void multiply(const float* a, const float* b, float* out, int64_t count);
// Relative error about 1e-6 (where the result isn't subnormal).
void activate(Activation kind, const float* x, float* out, int64_t count);

// out[i] = source[i] as fp32.
void convert_to_f32(const std::byte* source, DType dtype, float* out, int64_t count);

// One token: rotates the pairs (d, d + half) of each head by the angles whose cosines and sines are
// given.
void rotate(const float* x, const float* cos,
            const float* sin,                          // [heads, 2 * half], [half], [half]
            float* out, int64_t heads, int64_t half);  // may be x

// The first of the largest; a NaN counts as larger than any number, as in torch. count >= 1.
int64_t argmax(const float* x, int64_t count);

}  // namespace assay::engine::cpu
