// Weights at another element type: of fp32, fp16 and bf16, from these and from blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine {

// IEEE 754 binary16 and bfloat16 as bits. To the narrower type: round to nearest, ties to even;
// overflow gives infinity; a NaN stays a NaN of the same sign.
constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

constexpr uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);

// Writes from.shape.elements() elements of `to`, a float type (assert), at `out`, which must have
// room for them and not overlap `from`. Another source than fp32 is converted by way of it: exactly
// from elements, so that there is one rounding at most, and from blocks as decode() does. Parts of
// a tensor may be converted on threads of their own.
void convert(const TensorView& from, DType to, std::byte* out);

}  // namespace assay::engine
