// Each format's bits, as weight_format.h's decode() finds them.
#include "engine/block_cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace assay::engine {
namespace {

constexpr size_t kCell = kCellInputs;

uint8_t byte_at(const std::byte* at) {
  return std::to_integer<uint8_t>(*at);
}

// Codes of 4 or 5 bits: 16 bytes whose low halves are the first 16, and a bit each in `fifth`.
CellCodes small_values(const std::byte* low, uint32_t fifth) {
  CellCodes values;
  for (size_t i = 0; i < kCell / 2; ++i) {
    const uint8_t both = byte_at(low + i);
    values[i] = static_cast<uint8_t>((both & 0xF) | (fifth >> i & 1) << 4);
    values[i + kCell / 2] = static_cast<uint8_t>(both >> 4 | (fifth >> (i + kCell / 2) & 1) << 4);
  }
  return values;
}

// Cell `cell` of a block of 256 with 4 or 5 bits.
CellCodes nibble_values(const std::byte* low, const std::byte* fifth, int64_t cell) {
  CellCodes values;
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

CellCodes six_bit_values(const std::byte* block, int64_t cell) {
  CellCodes values;
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
CellCodes pairs_of_nibbles(const std::byte* codes, int64_t cell) {
  CellCodes values;
  codes += cell * kCellInputs / 2;
  for (size_t i = 0; i < kCell; ++i) {
    values[i] = static_cast<uint8_t>(byte_at(codes + i / 2) >> (i % 2 * 4) & 0xF);
  }
  return values;
}

CellCodes bytes_of(const std::byte* bytes, int64_t cell) {
  CellCodes values;
  std::memcpy(values.data(), bytes + cell * kCellInputs, kCell);
  return values;
}

}  // namespace

CellCodes cell_codes(WeightFormat format, const std::byte* block, int64_t cell) {
  uint32_t fifth = 0;
  CellCodes values;
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

uint32_t block_word(WeightFormat format, const std::byte* block) {
  const auto is_nan = [](std::byte value) { return (value & std::byte{0x7f}) == std::byte{0x7f}; };
  const bool is_float = block_parts(format).is_float;
  uint32_t word;
  std::memcpy(&word, block, sizeof word);
  const uint32_t zero = is_float ? 0 : word & 0xff;
  if (std::isnan(std::bit_cast<float>(word - zero)) ||
      (is_float && std::any_of(block + 4, block + traits(format).block_bytes, is_nan))) {
    return std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()) | zero;
  }
  return word;
}

ScaleAndMinimum scale_and_minimum(const std::byte* scales, int64_t j) {
  if (j < 4) {
    return {static_cast<uint8_t>(byte_at(scales + j) & 63),
            static_cast<uint8_t>(byte_at(scales + j + 4) & 63)};
  }
  return {
      static_cast<uint8_t>((byte_at(scales + j + 4) & 0xF) | (byte_at(scales + j - 4) >> 6) << 4),
      static_cast<uint8_t>(byte_at(scales + j + 4) >> 4 | (byte_at(scales + j) >> 6) << 4)};
}

}  // namespace assay::engine
