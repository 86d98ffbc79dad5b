// Codes become bf16 without an instruction a value: the lower bits of 128's significand are theirs.
#include "engine/codegen/cuda/block_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string_view>

#include "engine/block_cells.h"

namespace assay::engine {
namespace {

constexpr int64_t kCellLanes = CudaSlot::kCells * CudaSlot::kLanes;

// Uneven steps are stored as the 8 bits that they stand for.
BlockParts slot_parts(WeightFormat format) {
  BlockParts parts = block_parts(format);
  if (parts.is_uneven) parts.bits = 8;
  return parts;
}

int64_t low_bytes(const BlockParts& parts) {
  return kCellLanes * (parts.bits == 8 ? 16 : 8);
}
int64_t high_bytes(const BlockParts& parts) {
  return parts.bits == 8 ? 0 : kCellLanes * (parts.bits == 6 ? 4 : parts.bits == 5 ? 2 : 0);
}

// Where input `i` of a cell is: the lane's q, and the number of v.
struct Place {
  int64_t q, v;
};
constexpr Place place_of(int64_t i) {
  return {i % 16 / 4, i / 16 * 4 + i % 4};
}

// A column's codes of one cell.
void put_codes(const BlockParts& parts, const CudaSlot& slot, const CellCodes& codes, int64_t cell,
               int64_t column, uint8_t* to) {
  const int64_t g = column % 8, c = column / 8;
  for (int64_t i = 0; i < kCellInputs; ++i) {
    const auto [q, v] = place_of(i);
    const int64_t lane = 4 * g + q;
    unsigned code = codes[static_cast<size_t>(i)];
    if (parts.is_uneven) code = static_cast<unsigned>(kUnevenSteps[code] + parts.zero);
    const auto add = [&](int64_t at, int64_t bit, unsigned bits) {
      to[at + bit / 8] = static_cast<uint8_t>(to[at + bit / 8] | bits << bit % 8);
    };
    if (parts.bits == 8) {
      add((cell * CudaSlot::kLanes + lane) * 16 + c * 8 + v / 4 * 4, (v % 4 / 2 + v % 2 * 2) * 8,
          code);
      continue;
    }
    add((cell / 2 * CudaSlot::kLanes + lane) * 16 + cell % 2 * 8 + c * 4,
        4 * (v / 2) + 16 * (v % 2), code & 15);
    const int64_t p = 4 * c + v / 2;
    const int64_t high = lane * CudaSlot::kCells + cell;
    if (parts.bits == 6) add(slot.high_at + high * 4, 2 * p + 16 * (v % 2), code >> 4);
    if (parts.bits == 5) add(slot.high_at + high * 2, p + 8 * (v % 2), code >> 4);
  }
}

// Puts the scales of a column's cell, from the block that it is in.
void put_scales(const BlockParts& parts, const CudaSlot& slot, const std::byte* block,
                int64_t cell_of_block, int64_t cell, int64_t column, uint8_t* to) {
  const int64_t number = cell * slot.scales / CudaSlot::kCells;
  uint8_t* const scale = to + slot.scales_at + (column * slot.scales + number) * slot.scale_bytes;
  if (parts.has_word()) {
    const uint32_t word = block_word(slot.format, block);
    std::memcpy(scale, &word, sizeof word);
  } else {
    std::memcpy(scale, block + block_d_at(slot.format), 2);
    if (parts.has_minimum) std::memcpy(scale + 2, block + 2, 2);
  }
  if (!slot.small) return;
  const std::byte* const scales = block + block_scales_at(slot.format);
  uint8_t* const small = to + slot.small_at + (column * CudaSlot::kCells + cell) * 2;
  if (parts.has_minimum) {
    const ScaleAndMinimum both = scale_and_minimum(scales, cell_of_block);
    small[0] = both.scale, small[1] = both.minimum;
  } else {
    std::memcpy(small, scales + 2 * cell_of_block, 2);
  }
}

// A pair of codes of four bits or more, at `shift` of a word; more than four from `high`.
constexpr std::string_view kFewBits = R"(
struct CellCodes {{ unsigned a[1][4], b[1][4]; }};
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {{
  const uint4 two = ((const uint4*)slot)[cell / 2 * 32 + lane];
  const unsigned a = cell % 2 == 0 ? two.x : two.z, b = cell % 2 == 0 ? two.y : two.w;
{high}
  #pragma unroll
  for (int p = 0; p < 4; ++p) {{
    codes.a[0][p] = (a >> 4 * p & 0x000f000fu) | 0x43004300u{high_a};
    codes.b[0][p] = (b >> 4 * p & 0x000f000fu) | 0x43004300u{high_b};
  }}
}}
)";
constexpr std::string_view kNibbles = R"(
struct CellCodes { unsigned a[2][4], b[2][4]; };
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {
  const uint4 all = ((const uint4*)slot)[cell * 32 + lane];
  const unsigned words[4] = {all.x, all.y, all.z, all.w};
  #pragma unroll
  for (int n = 0; n < 2; ++n) {
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      codes.a[n][p] = (words[p / 2] >> (p % 2 * 8 + n * 4) & 0x000f000fu) | 0x43004300u;
      codes.b[n][p] = (words[2 + p / 2] >> (p % 2 * 8 + n * 4) & 0x000f000fu) | 0x43004300u;
    }
  }
}
)";
// e4m3's bits at bf16's, then 2^120 for the difference of the exponents' biases. Both are exact, of
// subnormal codes too.
constexpr std::string_view kFloats = R"(
struct CellCodes { unsigned a[1][4], b[1][4]; };
__device__ __forceinline__ unsigned from_e4m3_pair(unsigned codes) {
  const unsigned bits = (codes & 0x007f007fu) << 4 | (codes & 0x00800080u) << 8;
  unsigned both;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(bits), "r"(0x7b807b80u), "r"(0x80008000u));
  return both;
}
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {
  const uint4 all = ((const uint4*)slot)[cell * 32 + lane];
  const unsigned words[4] = {all.x, all.y, all.z, all.w};
  #pragma unroll
  for (int p = 0; p < 4; ++p) {
    codes.a[0][p] = from_e4m3_pair(words[p / 2] >> p % 2 * 8);
    codes.b[0][p] = from_e4m3_pair(words[2 + p / 2] >> p % 2 * 8);
  }
}
)";

constexpr std::string_view kScales = R"(
struct CellScales {{ float factor[HALVES], offset[HALVES]; }};
// 0 to 255 without an instruction that converts, of which there are few a cycle.
__device__ __forceinline__ float small_number(unsigned byte) {{
  return __uint_as_float(0x4b000000u | byte) - 8388608.0f;
}}
__device__ __forceinline__ void cell_scales(const char* slot, int cell, int column, CellScales& scales) {{
{body}}}
)";

std::string scales_body(const BlockParts& parts, const CudaSlot& slot) {
  const int64_t cells = CudaSlot::kCells / slot.scales;  // that share a scale
  const std::string scale = fmt::format("slot + {} + (column * {} + cell / {}) * {}",
                                        slot.scales_at, slot.scales, cells, slot.scale_bytes);
  const std::string small = fmt::format(
      "  const unsigned small = *(const unsigned short*)(slot + {} + (column * 4 + "
      "cell) * 2);\n",
      slot.small_at);
  // The pairs say more than the code by this.
  const int more = parts.is_float ? 0 : parts.bits == 8 ? 128 + 16 * 128 : 128;
  if (parts.scale == BlockParts::Scale::kWord) {
    return fmt::format("  scales.factor[0] = *(const float*)({});\n  scales.offset[0] = 0.0f;\n",
                       scale);
  }
  if (parts.scale == BlockParts::Scale::kWordAndZero) {
    return fmt::format(
        "  const unsigned word = *(const unsigned*)({});\n"
        "  scales.factor[0] = __uint_as_float(word & 0xffffff00u);\n"
        "  scales.offset[0] = -scales.factor[0] * ({}.0f + small_number(word & 0xffu));\n",
        scale, more);
  }
  if (parts.has_minimum) {
    std::string text = fmt::format("  const unsigned word = *(const unsigned*)({});\n", scale) +
                       "  const float d = from_f16((unsigned short)(word & 0xffffu)), m = "
                       "from_f16((unsigned short)(word >> 16));\n";
    if (!slot.small) {
      return text +
             fmt::format("  scales.factor[0] = d;\n  scales.offset[0] = m - {}.0f * d;\n", more);
    }
    return text + small +
           fmt::format(
               "  scales.factor[0] = d * small_number(small & 0xffu);\n"
               "  scales.offset[0] = -{}.0f * scales.factor[0] - m * small_number(small >> 8);\n",
               more);
  }
  const std::string d =
      fmt::format("  const float d = from_f16(*(const unsigned short*)({}));\n", scale);
  if (!slot.small) {
    return d + fmt::format("  scales.factor[0] = d;\n  scales.offset[0] = -{}.0f * d;\n",
                           more + parts.zero);
  }
  return d + small +
         fmt::format(
             "  #pragma unroll\n"
             "  for (int h = 0; h < 2; ++h) {{\n"
             "    scales.factor[h] = d * (small_number((small >> 8 * h & 0xffu) ^ 0x80u) - "
             "128.0f);\n"
             "    scales.offset[h] = -{}.0f * scales.factor[h];\n"
             "  }}\n",
             more + parts.zero);
}

std::string codes_text(const BlockParts& parts, const CudaSlot& slot) {
  if (parts.is_float) return std::string(kFloats);
  if (parts.bits == 8) return std::string(kNibbles);
  std::string load, a, b;
  if (parts.bits == 6) {
    load = fmt::format(
        "  const uint4 cells = ((const uint4*)(slot + {}))[lane];\n"
        "  const unsigned high = cell == 0 ? cells.x : cell == 1 ? cells.y : cell == 2 ? cells.z : "
        "cells.w;",
        slot.high_at);
    a = " | (high >> 2 * p & 0x00030003u) << 4", b = " | (high >> (8 + 2 * p) & 0x00030003u) << 4";
  } else if (parts.bits == 5) {
    load = fmt::format(
        "  const uint2 cells = ((const uint2*)(slot + {}))[lane];\n"
        "  const unsigned bits = (cell < 2 ? cells.x : cells.y) >> cell % 2 * 16 & 0xffffu;\n"
        "  const unsigned high = (bits & 0xffu) | (bits & 0xff00u) << 8;",
        slot.high_at);
    a = " | (high >> p & 0x00010001u) << 4", b = " | (high >> (4 + p) & 0x00010001u) << 4";
  }
  return fmt::format(fmt::runtime(kFewBits), fmt::arg("high", load), fmt::arg("high_a", a),
                     fmt::arg("high_b", b));
}

// The lane and the half of a word that have an input.
constexpr std::string_view kValue = R"(
__device__ __forceinline__ float block_value(const void* base, long column, int input) {
  const char* slot = (const char*)base + (column / 16 * SLOTS + input / 128) * SLOT_BYTES;
  const int cell = input % 128 / 32, i = input % 32, v = i / 16 * 4 + i % 4, of_group = (int)(column % 16);
  CellCodes codes;
  cell_codes(slot, cell, of_group % 8 * 4 + i % 16 / 4, codes);
  float code = 0.0f;
  #pragma unroll
  for (int n = NIBBLES - 1; n >= 0; --n) {
    unsigned pair = 0;
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (v / 2 == p) pair = of_group < 8 ? codes.a[n][p] : codes.b[n][p];
    }
    code = code * 16.0f + from_bf16((unsigned short)(v % 2 == 0 ? pair & 0xffffu : pair >> 16));
  }
  CellScales scales;
  cell_scales(slot, cell, of_group, scales);
  const int half = HALVES == 2 ? i / 16 : 0;
  return scales.factor[half] * code + scales.offset[half];
}
)";

}  // namespace

CudaSlot cuda_slot(WeightFormat format) {
  const BlockParts parts = slot_parts(format);
  CudaSlot slot{.format = format};
  slot.high_at = low_bytes(parts);
  slot.scales_at = slot.high_at + high_bytes(parts);
  slot.scale_bytes = parts.has_word() || parts.has_minimum ? 4 : 2;
  slot.scales = std::max<int64_t>(CudaSlot::kCells / parts.cells, 1);
  slot.small_at = slot.scales_at + slot.scales * CudaSlot::kColumns * slot.scale_bytes;
  slot.small = parts.scale_bytes > 0;
  slot.bytes = slot.small_at + (slot.small ? CudaSlot::kCells * CudaSlot::kColumns * 2 : 0);
  assert(slot.bytes % 16 == 0);
  return slot;
}

int64_t cuda_group_bytes(WeightFormat format, int64_t inputs) {
  return CudaSlot::count(inputs) * cuda_slot(format).bytes;
}

void pack_cuda_group(WeightFormat format,
                     std::span<const std::byte* const, CudaSlot::kColumns> columns, int64_t inputs,
                     std::byte* to) {
  const BlockParts parts = slot_parts(format);
  const CudaSlot slot = cuda_slot(format);
  const FormatTraits& t = traits(format);
  assert(inputs % t.block_values == 0);
  std::memset(to, 0, static_cast<size_t>(cuda_group_bytes(format, inputs)));
  for (int64_t column = 0; column < CudaSlot::kColumns; ++column) {
    const std::byte* const row = columns[static_cast<size_t>(column)];
    if (row == nullptr) continue;
    for (int64_t at = 0; at < inputs; at += kCellInputs) {
      const std::byte* const block = row + static_cast<size_t>(at / t.block_values) * t.block_bytes;
      const int64_t cell_of_block = at % t.block_values / kCellInputs;
      const int64_t cell = at % CudaSlot::kInputs / kCellInputs;
      auto* const place = reinterpret_cast<uint8_t*>(to + at / CudaSlot::kInputs * slot.bytes);
      put_codes(parts, slot, cell_codes(format, block, cell_of_block), cell, column, place);
      put_scales(parts, slot, block, cell_of_block, cell, column, place);
    }
  }
}

std::string cuda_slot_text(WeightFormat format, int64_t inputs) {
  const BlockParts parts = slot_parts(format);
  const CudaSlot slot = cuda_slot(format);
  return fmt::format("\nenum {{ SLOT_BYTES = {}, SLOTS = {}, HALVES = {}, NIBBLES = {} }};",
                     slot.bytes, CudaSlot::count(inputs), format == WeightFormat::kQ6_K ? 2 : 1,
                     parts.bits == 8 && !parts.is_float ? 2 : 1) +
         codes_text(parts, slot) +
         fmt::format(fmt::runtime(kScales), fmt::arg("body", scales_body(parts, slot)));
}

std::string cuda_block_value_text() {
  return std::string(kValue);
}

}  // namespace assay::engine
