// Products with weights in blocks: rows of activations are rounded to blocks of 16-bit integers
// once, and their integer dot products with the weights' own values are scaled and summed in fp32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine::cpu {

// 32 activations: x[i] is about scale * (an integer of -32512 to 32512). Rounding to 8 bits instead
// would cost as much quality as a weight's bit does (docs/engine-figures.md), and would make the
// tokens depend on the last bits of x, in which two orders of the same sums differ.
struct QuantizedBlock {
  static constexpr int64_t kValues = 32;
  static constexpr int64_t kLargest = 127 * 256;
  // Two for four integers, in the order in which this processor multiplies them.
  std::array<int32_t, kValues / 2> words;
  float scale;                       // max |x| / kLargest; NaN if an x is infinite or NaN
  float sum;                         // scale times the sum of the integers
  std::array<int32_t, 2> half_sums;  // of the first 16 integers and the last
};

// blocks[i] = x[32 i] on, each to the nearest; |error| <= scale / 2 (1 + 1e-2). A block whose
// largest is below 4e-34 is zeros. `inputs` is a multiple of 32: assert.
void quantize(const float* x, int64_t inputs, QuantizedBlock* blocks);

// Tiles of a packed weight (quantized_layout.h), one behind the other:
// out[r, 64 t + c] = sum over i of x[r, i] * tile t [c, i].
struct QuantizedProduct {
  const QuantizedBlock* x = nullptr;  // [rows, inputs / 32]
  int64_t rows = 0;
  int64_t inputs = 0;
  WeightFormat format = WeightFormat::kQ8_0;
  const std::byte* tiles = nullptr;  // 32-byte aligned
  int64_t tile_count = 1;
  float* out = nullptr;  // [rows, out_pitch]; the first 64 * tile_count of each row are written
  int64_t out_pitch = 0;
};
void quantized_product(const QuantizedProduct& product);

// A tile as a panel of bf16 (Packing in weight_layout.h), each value to the nearest; 64-byte
// aligned. A product of many rows by pairs of bf16 takes less time than one of integers.
void tile_to_bf16(WeightFormat format, const std::byte* tile, int64_t inputs, uint16_t* panel);

}  // namespace assay::engine::cpu
