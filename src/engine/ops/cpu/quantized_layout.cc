// Packing: each block is taken apart into its scales and 32 values a cell, then put together again.
#include "engine/ops/cpu/quantized_layout.h"

#include <algorithm>
#include <cstring>

namespace assay::engine::cpu {
namespace {

constexpr int64_t kOutputs = PackedBlock::kOutputs;

// Writes the values of output `o` (of 16) into a zeroed cell.
void put_values(const PackedBlock& layout, const CellCodes& values, int64_t o, uint8_t* cell) {
  uint8_t* high = cell + layout.low_bytes();
  for (int64_t v = 0; v < PackedBlock::kVectors; ++v) {
    const uint8_t* from = values.data() + 4 * v;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t at = 4 * o + k;
      if (layout.bits == 8) {
        cell[v * PackedBlock::kVectorBytes + at] = from[k];
        continue;
      }
      uint8_t& low = cell[v / 2 * PackedBlock::kVectorBytes + at];
      low = static_cast<uint8_t>(low | (from[k] & 0xF) << v % 2 * 4);
      if (layout.bits == 5) {
        high[at] = static_cast<uint8_t>(high[at] | (from[k] >> 4) << v);
      } else if (layout.bits == 6) {
        uint8_t& pairs = high[v / 4 * PackedBlock::kVectorBytes + at];
        pairs = static_cast<uint8_t>(pairs | (from[k] >> 4) << 2 * (v % 4));
      }
    }
  }
}

void put_cells(WeightFormat format, const PackedBlock& layout, const std::byte* from, int64_t o,
               uint8_t* to) {
  for (int64_t c = 0; c < layout.cells; ++c) {
    put_values(layout, cell_codes(format, from, c), o,
               to + layout.cells_at() + c * layout.cell_bytes());
  }
}

// Block `from` of output `o`.
void put_block(WeightFormat format, const PackedBlock& layout, const std::byte* from, int64_t o,
               uint8_t* to) {
  if (layout.has_word()) {
    const uint32_t word = block_word(format, from);
    std::memcpy(to + 4 * o, &word, 4);
    return put_cells(format, layout, from, o, to);
  }
  std::memcpy(to + 2 * o, from + block_d_at(format), 2);
  if (layout.has_minimum) std::memcpy(to + layout.minimum_at() + 2 * o, from + 2, 2);
  for (int64_t i = 0; i < layout.scale_bytes; i += 4) {
    std::memcpy(to + layout.scales_at() + (i / 4 * kOutputs + o) * 4,
                from + block_scales_at(format) + i, 4);
  }
  put_cells(format, layout, from, o, to);
}

}  // namespace

size_t block_tile_bytes(WeightFormat format, int64_t inputs) {
  const FormatTraits& t = traits(format);
  assert(inputs % t.block_values == 0);
  return static_cast<size_t>(Packing::kPanel * (inputs / t.block_values)) * t.block_bytes;
}

void pack_block_tile(WeightFormat format, std::span<const std::byte* const, Packing::kPanel> rows,
                     int64_t inputs, std::byte* tile) {
  const FormatTraits& t = traits(format);
  const PackedBlock layout = packed_block(format);
  assert(static_cast<size_t>(layout.bytes()) == kOutputs * t.block_bytes);
  auto* to = reinterpret_cast<uint8_t*>(tile);
  std::memset(tile, 0, block_tile_bytes(format, inputs));
  for (size_t group = 0; group < PackedBlock::kGroups; ++group) {
    for (int64_t b = 0; b < inputs / t.block_values; ++b, to += layout.bytes()) {
      for (size_t o = 0; o < kOutputs; ++o) {
        const std::byte* row = rows[group * kOutputs + o];
        if (row == nullptr) continue;  // d = 0 and m = 0
        put_block(format, layout, row + static_cast<size_t>(b) * t.block_bytes,
                  static_cast<int64_t>(o), to);
      }
    }
  }
}

}  // namespace assay::engine::cpu
