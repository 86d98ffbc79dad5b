// Weights in blocks (weight_format.h) as the processor's kernels read them: the same bits in
// another order, so that neighbouring lanes of a register belong to neighbouring outputs and no sum
// goes across lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/block_cells.h"
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
struct PackedBlock : BlockParts {
  static constexpr int64_t kOutputs = 16;
  static constexpr int64_t kGroups = Packing::kPanel / kOutputs;  // of a tile
  static constexpr int64_t kCellInputs = engine::kCellInputs;
  static constexpr int64_t kVectors = 8;  // of a cell: four inputs each
  static constexpr int64_t kVectorBytes = 4 * kOutputs;

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
  return {block_parts(format)};
}

// Bytes of a tile: as many as its rows have in the file.
size_t block_tile_bytes(WeightFormat format, int64_t inputs);

// rows[c]: the blocks of the tile's output c, or null for zeros. `tile`: block_tile_bytes(). Where
// a block of e4m3 has a NaN among its values, its scale becomes one.
void pack_block_tile(WeightFormat format, std::span<const std::byte* const, Packing::kPanel> rows,
                     int64_t inputs, std::byte* tile);

}  // namespace assay::engine::cpu
