// Packing: each block is taken apart into its scales and 32 values a cell, then put together again.
#include "engine/ops/cpu/quantized_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace assay::engine::cpu {
namespace {

constexpr int64_t kOutputs = PackedBlock::kOutputs;
constexpr size_t kCell = PackedBlock::kCellInputs;
using Values = std::array<uint8_t, kCell>;  // as PackedBlock stores them

uint8_t byte_at(const std::byte* at) {
  return std::to_integer<uint8_t>(*at);
}

// Values of 4 or 5 bits: 16 bytes whose low halves are the first 16, and a bit each in `fifth`.
Values small_values(const std::byte* low, uint32_t fifth) {
  Values values;
  for (size_t i = 0; i < kCell / 2; ++i) {
    const uint8_t both = byte_at(low + i);
    values[i] = static_cast<uint8_t>((both & 0xF) | (fifth >> i & 1) << 4);
    values[i + kCell / 2] = static_cast<uint8_t>(both >> 4 | (fifth >> (i + kCell / 2) & 1) << 4);
  }
  return values;
}

// Cell `cell` of a block of 256 with 4 or 5 bits.
Values nibble_values(const std::byte* low, const std::byte* fifth, int64_t cell) {
  Values values;
  low += cell / 2 * 32;
  const int shift = cell % 2 == 0 ? 0 : 4;
  for (size_t i = 0; i < kCell; ++i) {
    values[i] = static_cast<uint8_t>(byte_at(low + i) >> shift & 0xF);
    if (fifth != nullptr) {
      values[i] = static_cast<uint8_t>(values[i] | (byte_at(fifth + i) >> cell & 1) << 4);
    }
  }
  return values;
}

Values six_bit_values(const std::byte* block, int64_t cell) {
  Values values;
  const std::byte* low = block + cell / 4 * 64 + cell % 2 * 32;
  const std::byte* high = block + 128 + cell / 4 * 32;
  const int64_t quarter = cell % 4;
  const int shift = quarter < 2 ? 0 : 4;
  for (size_t i = 0; i < kCell; ++i) {
    values[i] = static_cast<uint8_t>((byte_at(low + i) >> shift & 0xF) |
                                     (byte_at(high + i) >> 2 * quarter & 3) << 4);
  }
  return values;
}

// Cell `cell` of codes that lie in the order of the inputs, two in a byte.
Values pairs_of_nibbles(const std::byte* codes, int64_t cell) {
  Values values;
  codes += cell * PackedBlock::kCellInputs / 2;
  for (size_t i = 0; i < kCell; ++i) {
    values[i] = static_cast<uint8_t>(byte_at(codes + i / 2) >> (i % 2 * 4) & 0xF);
  }
  return values;
}

Values bytes_of(const std::byte* bytes, int64_t cell) {
  Values values;
  std::memcpy(values.data(), bytes + cell * PackedBlock::kCellInputs, kCell);
  return values;
}

Values values_of(WeightFormat format, const std::byte* block, int64_t cell) {
  uint32_t fifth = 0;
  Values values;
  switch (format) {
    case WeightFormat::kQ8_0:
      for (size_t i = 0; i < kCell; ++i) {
        values[i] = static_cast<uint8_t>(byte_at(block + 2 + i) ^ 0x80);
      }
      return values;
    case WeightFormat::kQ4_0:
    case WeightFormat::kIQ4_NL:
      return small_values(block + 2, 0);
    case WeightFormat::kQ4_1:
      return small_values(block + 4, 0);
    case WeightFormat::kQ5_0:
      std::memcpy(&fifth, block + 2, sizeof fifth);
      return small_values(block + 6, fifth);
    case WeightFormat::kQ5_1:
      std::memcpy(&fifth, block + 4, sizeof fifth);
      return small_values(block + 8, fifth);
    case WeightFormat::kQ4_K:
      return nibble_values(block + 16, nullptr, cell);
    case WeightFormat::kQ5_K:
      return nibble_values(block + 48, block + 16, cell);
    case WeightFormat::kQ6_K:
      return six_bit_values(block, cell);
    case WeightFormat::kInt4_G32:
    case WeightFormat::kInt4_G64:
    case WeightFormat::kInt4_G128:
      return pairs_of_nibbles(block + 4, cell);
    case WeightFormat::kFp8_G32:
    case WeightFormat::kFp8_G128:
      return bytes_of(block + 4, cell);
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      break;
  }
  assert(false && "not a format of blocks");
  return {};
}

// Writes the values of output `o` (of 16) into a zeroed cell.
void put_values(const PackedBlock& layout, const Values& values, int64_t o, uint8_t* cell) {
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
    put_values(layout, values_of(format, from, c), o,
               to + layout.cells_at() + c * layout.cell_bytes());
  }
}

// Block `from` of output `o`.
void put_block(WeightFormat format, const PackedBlock& layout, const std::byte* from, int64_t o,
               uint8_t* to) {
  if (layout.has_word()) {
    const auto is_nan = [](std::byte value) {
      return (value & std::byte{0x7f}) == std::byte{0x7f};
    };
    uint32_t word;
    std::memcpy(&word, from, 4);
    const uint32_t zero = layout.is_float ? 0 : word & 0xff;
    // The usual NaN, whose upper half stays one when it is rounded.
    if (std::isnan(std::bit_cast<float>(word - zero)) ||
        (layout.is_float && std::any_of(from + 4, from + traits(format).block_bytes, is_nan))) {
      word = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()) | zero;
    }
    std::memcpy(to + 4 * o, &word, 4);
    return put_cells(format, layout, from, o, to);
  }
  const bool six = format == WeightFormat::kQ6_K;  // its scales are behind the values
  std::memcpy(to + 2 * o, from + (six ? 208 : 0), 2);
  if (layout.has_minimum) std::memcpy(to + layout.minimum_at() + 2 * o, from + 2, 2);
  for (int64_t i = 0; i < layout.scale_bytes; i += 4) {
    std::memcpy(to + layout.scales_at() + (i / 4 * kOutputs + o) * 4, from + (six ? 192 : 4) + i,
                4);
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
