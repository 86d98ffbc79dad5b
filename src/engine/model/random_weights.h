// Random weights that are the same on every machine: integers, then scaled by powers of two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/process/thread_pool.h"
#include "engine/model/checkpoint.h"
#include "engine/tensor.h"

namespace assay::engine {

// The filling of one tensor of a random checkpoint. Norm weights are 1. Everything else is
// approximately normal: the sum of four uniform 16-bit integers (Irwin-Hall), centred, times
// 2^-shift. Embeddings and biases get a standard deviation of 0.018, near the 0.02 that models are
// initialised with; products get one within a factor of sqrt(2) of 1 / sqrt(inputs), so that each
// layer passes a signal of unit size on, logits stay within a few units, and greedy decoding
// doesn't just repeat the last token.
struct WeightFill {
  bool ones = false;
  int shift = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;  // one for each tensor
};

// `index` is the tensor's place in tensor_specs().
WeightFill weight_fill(const TensorSpec& spec, size_t index, Architecture architecture,
                       uint64_t seed);

// Elements are drawn in blocks, each from a random stream of its own, so that threads share the
// work and any part of a tensor can be made alone.
inline constexpr uint64_t kFillBlock = 4096;

// Elements [begin, begin + count) of the tensor as `dtype` to `out`; begin is a multiple of
// kFillBlock.
void fill_weights(const WeightFill& fill, uint64_t begin, uint64_t count, DType dtype,
                  std::byte* out, ThreadPool& pool);

}  // namespace assay::engine
