// Weights in blocks (weight_format.h) as the processor's kernels read them: the same bits in
// another order, so that neighbouring lanes of a register belong to neighbouring outputs and no sum
// goes across lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/weight_format.h"
#include "engine/weight_layout.h"

namespace assay::engine::cpu {

// A tile has kPanel outputs: four groups of 16, one behind the other, so that a product reads one
// stream of memory. A group has its blocks in the order of the inputs, and a packed block those of
// 16 outputs:
//   f16 d[16], f16 m[16] (formats with a minimum), or the first word of each block, dwords [16],
//   the small scales of 16 outputs, as dwords: [bytes / 4][16] (formats of 256 values),
//   a cell for each 32 inputs: low bits, [8 or 4][16 outputs][4 inputs], then high bits.
// Formats of 8 bits have the value + 128 there, a byte each, or the bits of an e4m3; vector v has
// inputs 4 v to 4 v + 3. Others have the low nibbles of vectors v and v + 1, v even, in the halves
// of vector v / 2. The fifth bit of vector v is bit v of the cell's byte; the upper two of six bits
// are bits 2 (v % 4) and the next of the byte in vector v / 4.
struct PackedBlock {
  static constexpr int64_t kOutputs = 16;
  static constexpr int64_t kGroups = Packing::kPanel / kOutputs;  // of a tile
  static constexpr int64_t kCellInputs = 32;
  static constexpr int64_t kVectors = 8;  // of a cell: four inputs each
  static constexpr int64_t kVectorBytes = 4 * kOutputs;

  // Before the cells.
  enum class Scale {
    kHalf,         // f16 d
    kWordAndZero,  // a word of int4 blocks (weight_format.h)
    kWord,         // an fp32 scale
  };

  int bits = 4;  // of a value
  int zero = 0;  // what is subtracted from a value as it is stored
  bool has_minimum = false;
  int64_t cells = 1;
  int64_t scale_bytes = 0;  // small scales of one output
  Scale scale = Scale::kHalf;
  bool is_float = false;   // values are e4m3
  bool is_uneven = false;  // bits are a code of kUnevenSteps, whose value + zero is the value
  constexpr bool has_word() const { return scale != Scale::kHalf; }
  // A value has something added to it once it is scaled: less a minimum, or a scaled zero.
  constexpr bool has_offset() const { return has_minimum || scale == Scale::kWordAndZero; }
  constexpr int64_t minimum_at() const { return kOutputs * 2; }
  constexpr int64_t scales_at() const { return kOutputs * (has_minimum || has_word() ? 4 : 2); }
  constexpr int64_t cells_at() const { return scales_at() + kOutputs * scale_bytes; }
  constexpr int64_t low_bytes() const { return kOutputs * kCellInputs * (bits == 8 ? 8 : 4) / 8; }
  constexpr int64_t cell_bytes() const {
    return low_bytes() + (bits == 8 ? 0 : kOutputs * kCellInputs * (bits - 4) / 8);
  }
  constexpr int64_t bytes() const { return cells_at() + cells * cell_bytes(); }
};

// The format must be one of blocks.
constexpr PackedBlock packed_block(WeightFormat format) {
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
      return {.bits = 4, .cells = 1, .scale = PackedBlock::Scale::kWordAndZero};
    case WeightFormat::kInt4_G64:
      return {.bits = 4, .cells = 2, .scale = PackedBlock::Scale::kWordAndZero};
    case WeightFormat::kInt4_G128:
      return {.bits = 4, .cells = 4, .scale = PackedBlock::Scale::kWordAndZero};
    case WeightFormat::kFp8_G32:
      return {.bits = 8, .cells = 1, .scale = PackedBlock::Scale::kWord, .is_float = true};
    case WeightFormat::kFp8_G128:
      return {.bits = 8, .cells = 4, .scale = PackedBlock::Scale::kWord, .is_float = true};
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      break;
  }
  assert(false && "not a format of blocks");
  return {};
}

// Bytes of a tile: as many as its rows have in the file.
size_t block_tile_bytes(WeightFormat format, int64_t inputs);

// rows[c]: the blocks of the tile's output c, or null for zeros. `tile`: block_tile_bytes(). Where
// a block of e4m3 has a NaN among its values, its scale becomes one.
void pack_block_tile(WeightFormat format, std::span<const std::byte* const, Packing::kPanel> rows,
                     int64_t inputs, std::byte* tile);

}  // namespace assay::engine::cpu
