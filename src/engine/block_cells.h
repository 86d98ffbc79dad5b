// A block of weight_format.h taken apart: the codes of 32 values at a time, and what they are
// scaled by. The layouts that devices read are put together from these.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine {

constexpr int64_t kCellInputs = 32;

struct BlockParts {
  enum class Scale {
    kHalf,         // f16 d
    kWordAndZero,  // a word of int4 blocks (weight_format.h)
    kWord,         // an fp32 scale
  };

  int bits = 4;  // of a code
  int zero = 0;  // is subtracted from a code before it is scaled
  bool has_minimum = false;
  int64_t cells = 1;        // of a block
  int64_t scale_bytes = 0;  // small scales of a block
  Scale scale = Scale::kHalf;
  bool is_float = false;   // codes are e4m3
  bool is_uneven = false;  // codes are of kUnevenSteps, whose value + zero is scaled
  constexpr bool has_word() const { return scale != Scale::kHalf; }
  // A value has something added to it once it is scaled: less a minimum, or a scaled zero.
  constexpr bool has_offset() const { return has_minimum || scale == Scale::kWordAndZero; }
};

// The format must be one of blocks.
constexpr BlockParts block_parts(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ8_0:
      return {.bits = 8, .zero = 128};
    case WeightFormat::kQ4_0:
      return {.bits = 4, .zero = 8};
    case WeightFormat::kQ4_1:
      return {.bits = 4, .has_minimum = true};
    case WeightFormat::kQ5_0:
      return {.bits = 5, .zero = 16};
    case WeightFormat::kQ5_1:
      return {.bits = 5, .has_minimum = true};
    case WeightFormat::kQ4_K:
      return {.bits = 4, .has_minimum = true, .cells = 8, .scale_bytes = 12};
    case WeightFormat::kQ5_K:
      return {.bits = 5, .has_minimum = true, .cells = 8, .scale_bytes = 12};
    case WeightFormat::kQ6_K:
      return {.bits = 6, .zero = 32, .cells = 8, .scale_bytes = 16};
    case WeightFormat::kIQ4_NL:
      return {.bits = 4, .zero = 128, .is_uneven = true};
    case WeightFormat::kInt4_G32:
      return {.bits = 4, .cells = 1, .scale = BlockParts::Scale::kWordAndZero};
    case WeightFormat::kInt4_G64:
      return {.bits = 4, .cells = 2, .scale = BlockParts::Scale::kWordAndZero};
    case WeightFormat::kInt4_G128:
      return {.bits = 4, .cells = 4, .scale = BlockParts::Scale::kWordAndZero};
    case WeightFormat::kFp8_G32:
      return {.bits = 8, .cells = 1, .scale = BlockParts::Scale::kWord, .is_float = true};
    case WeightFormat::kFp8_G128:
      return {.bits = 8, .cells = 4, .scale = BlockParts::Scale::kWord, .is_float = true};
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      break;
  }
  assert(false && "not a format of blocks");
  return {};
}

// The codes of a cell, in the order of the inputs: a byte each of 4 to 8 bits, without a sign.
// Those of q8_0 are the value + 128.
using CellCodes = std::array<uint8_t, kCellInputs>;
CellCodes cell_codes(WeightFormat format, const std::byte* block, int64_t cell);

// The first word of a block that has_word(). Where a block of e4m3 has a NaN among its values, its
// scale becomes one: the usual NaN, whose upper half stays one when it is rounded.
uint32_t block_word(WeightFormat format, const std::byte* block);

// Where the f16 d of a block without a word lies, and the small scales.
constexpr int64_t block_d_at(WeightFormat format) {
  return format == WeightFormat::kQ6_K ? 208 : 0;
}
constexpr int64_t block_scales_at(WeightFormat format) {
  return format == WeightFormat::kQ6_K ? 192 : 4;
}

struct ScaleAndMinimum {
  uint8_t scale, minimum;
};
// Pair `j` of the eight that the 12 bytes of q4_k and q5_k hold with 6 bits each.
ScaleAndMinimum scale_and_minimum(const std::byte* scales, int64_t j);

}  // namespace assay::engine
