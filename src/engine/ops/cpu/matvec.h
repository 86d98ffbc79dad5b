// Matrix-vector product, for one to a few rows of activations: weights are read once, in place, and
// widened in registers. SIMD on one thread; the caller shares the outputs out.
#pragma once

#include <cstdint>

#include "engine/ops/ops.h"
#include "engine/tensor.h"

namespace assay::engine::cpu {

struct Matvec {
  const float* x = nullptr;  // [rows, inputs]
  int64_t rows = 0;
  TensorView weight;  // [outputs, inputs] or [inputs, outputs], its data aligned to its element
  WeightLayout layout = WeightLayout::kOutIn;
  const TensorView* bias = nullptr;  // [outputs], or null
  float* out = nullptr;              // [rows, outputs]
  int64_t inputs = 0;
  int64_t outputs = 0;
};

// Computes the outputs [begin, end) of every row. What an output is doesn't depend on how the
// outputs are shared out: sums run in one order.
void matvec(const Matvec& product, int64_t begin, int64_t end);

}  // namespace assay::engine::cpu
