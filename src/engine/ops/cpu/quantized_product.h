// Products with weights in blocks: rows of activations are rounded to int8 blocks once, and their
// integer dot products with the weights' own values are scaled and summed in fp32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine::cpu {

// 32 activations: x[i] is about scale * values[i].
struct QuantizedBlock {
  static constexpr int64_t kValues = 32;
  std::array<int8_t, kValues> values;  // -127 to 127
  float scale;                         // max |x| / 127; NaN if an x is infinite or NaN
  float sum;                           // scale times the sum of the values
  std::array<int32_t, 2> half_sums;    // of the first 16 values and the last
};

// blocks[i] = x[32 i] on, each to the nearest; |error| <= scale / 2 (1 + 1e-6). A block whose
// largest is below 1e-36 is zeros. `inputs` is a multiple of 32: assert.
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
// aligned. A product of many rows by the processor's tiles takes less time than one of integers,
// whose sums of each 32 inputs have scales of their own.
void tile_to_bf16(WeightFormat format, const std::byte* tile, int64_t inputs, uint16_t* panel);

}  // namespace assay::engine::cpu
