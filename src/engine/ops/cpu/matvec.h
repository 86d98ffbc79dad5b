// Matrix-vector product, for one to a few rows of activations: weights are read once, in place, and
// widened in registers. SIMD on one thread; the caller shares the work out.
#pragma once

#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine::cpu {

struct Matvec {
  const float* x = nullptr;  // [rows, inputs]
  int64_t rows = 0;
  TensorView weight;  // [outputs, inputs] or [inputs, outputs] of elements, aligned to them
  const TensorView* bias = nullptr;  // [outputs], or null
  float* out = nullptr;              // [rows, outputs]
  int64_t inputs = 0;
  int64_t outputs = 0;
};

// The weight is [outputs, inputs]: computes the outputs [begin, end) of every row. An output's
// value doesn't depend on how the outputs are shared out.
void matvec_out_in(const Matvec& product, int64_t begin, int64_t end);

// The weight is [inputs, outputs]: out = bias + the part of the sum over inputs [begin, end), for
// every row. The range may be empty. Sharing out inputs, not outputs, keeps each thread's reads
// contiguous.
void matvec_in_out(const Matvec& product, int64_t begin, int64_t end);

}  // namespace assay::engine::cpu
