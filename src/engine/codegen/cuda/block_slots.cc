// Codes become bytes, four an instruction: the order in a slot is that of a fragment's words.
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
// A byte's upper bit; cell_codes() adds so much to codes that have a sign.
constexpr unsigned kSignBit = 128;

// Codes as slots hold them: uneven steps as the 8 bits that they stand for.
BlockParts slot_parts(WeightFormat format) {
  BlockParts parts = block_parts(format);
  if (parts.is_uneven) parts.bits = 8;
  return parts;
}
// A code's bits begin so far up in its byte.
int code_shift(const BlockParts& parts) {
  return 8 - parts.bits;
}

int64_t upper_bytes(const BlockParts& parts) {
  return kCellLanes * (parts.bits == 8 ? 16 : 8);
}
int64_t lower_bytes(const BlockParts& parts) {
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
    const int64_t lane = 4 * g + q, half = v / 4, byte = v % 4;
    unsigned code = codes[static_cast<size_t>(i)];
    if (parts.is_uneven) code = static_cast<unsigned>(kUnevenSteps[code] + kSignBit);
    code <<= code_shift(parts);
    if (!parts.has_offset() && !parts.is_float) {
      assert(parts.zero == 1 << (parts.bits - 1));  // so that the upper bit becomes the sign
      code ^= kSignBit;
    }
    const auto add = [&](int64_t at, int64_t bit, unsigned bits) {
      to[at] = static_cast<uint8_t>(to[at] | bits << bit);
    };
    if (parts.bits == 8) {
      add((cell * CudaSlot::kLanes + lane) * 16 + half * 8 + c * 4 + byte, 0, code);
      continue;
    }
    add((cell / 2 * CudaSlot::kLanes + lane) * 16 + cell % 2 * 8 + c * 4 + byte, 4 * half,
        code >> 4);
    const auto low = [&](int64_t word) {
      return slot.low_at + (word * CudaSlot::kLanes + lane) * 4 + byte;
    };
    if (parts.bits == 6) add(low(cell), 4 * c + 2 * half, code >> 2 & 3);
    if (parts.bits == 5) add(low(cell / 2), cell % 2 * 4 + 2 * c + half, code >> 3 & 1);
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
    for (int64_t half = 0; half < 2; ++half) {
      const auto stored = std::to_integer<uint8_t>(scales[2 * cell_of_block + half]);
      small[half] = static_cast<uint8_t>(stored ^ kSignBit);
    }
  }
}

constexpr std::string_view kNumbers = R"(
// A byte of a word less a zero, without an instruction that converts, of which there are few a cycle.
__device__ __forceinline__ float number_of(unsigned word, int byte, float zero) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 + byte)) - (8388608.0f + zero);
}
)";

// Codes of four bits, and `rest`, what further bits add to the words.
constexpr std::string_view kFewBits = R"(
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {{
  const uint4 two = ((const uint4*)slot)[cell / 2 * 32 + lane];
  const unsigned a = cell % 2 == 0 ? two.x : two.z, b = cell % 2 == 0 ? two.y : two.w;
  codes.of[0] = a << 4 & 0xf0f0f0f0u, codes.of[1] = b << 4 & 0xf0f0f0f0u;
  codes.of[2] = a & 0xf0f0f0f0u, codes.of[3] = b & 0xf0f0f0f0u;
{rest}}}
)";
constexpr std::string_view kFiveBits = R"(
  const unsigned two_cells = ((const unsigned*)(slot + {}))[cell / 2 * 32 + lane];
  const unsigned rest = cell % 2 == 0 ? two_cells : two_cells >> 4;
  codes.of[0] |= rest << 3 & 0x08080808u, codes.of[1] |= rest << 1 & 0x08080808u;
  codes.of[2] |= rest << 2 & 0x08080808u, codes.of[3] |= rest & 0x08080808u;
)";
constexpr std::string_view kSixBits = R"(
  const unsigned rest = ((const unsigned*)(slot + {}))[cell * 32 + lane];
  codes.of[0] |= rest << 2 & 0x0c0c0c0cu, codes.of[1] |= rest >> 2 & 0x0c0c0c0cu;
  codes.of[2] |= rest & 0x0c0c0c0cu, codes.of[3] |= rest >> 4 & 0x0c0c0c0cu;
)";
constexpr std::string_view kBytes = R"(
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {
  const uint4 all = ((const uint4*)slot)[cell * 32 + lane];
  codes.of[0] = all.x, codes.of[1] = all.y, codes.of[2] = all.z, codes.of[3] = all.w;
}
)";
constexpr std::string_view kByteValue = R"(
__device__ __forceinline__ float code_value(const CellCodes& codes, int c, int v) {
  const unsigned bytes = codes.of[v / 4 * 2 + c] ^ (OFFSETS ? 0u : 0x80808080u);
  return number_of(bytes, v % 4, OFFSETS ? 0.0f : 128.0f) * (1.0f / (1 << CODE_SHIFT));
}
)";
// e4m3 as fp16, which holds all of it. GPUs without an instruction for it put the bits at fp16's,
// then multiply by 2^8 for the difference of the exponents' biases: exact, of subnormal codes too.
constexpr std::string_view kFloats = R"(
__device__ __forceinline__ unsigned from_e4m3_pair(unsigned codes) {
  unsigned both;
#if __CUDA_ARCH__ >= 890
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"((unsigned short)codes));
#else
  const unsigned apart = (codes & 0xffu) << 8 | (codes & 0xff00u) << 16;
  const unsigned bits = (apart & 0x80008000u) | (apart & 0x7f007f00u) >> 1;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(bits), "r"(0x5c005c00u));
#endif
  return both;
}
__device__ __forceinline__ void cell_codes(const char* slot, int cell, int lane, CellCodes& codes) {
  const uint4 all = ((const uint4*)slot)[cell * 32 + lane];
  const unsigned words[4] = {all.x, all.y, all.z, all.w};
  #pragma unroll
  for (int i = 0; i < 8; ++i) codes.of[i] = from_e4m3_pair(words[i / 4 * 2 + i % 2] >> i % 4 / 2 * 16 & 0xffffu);
}
__device__ __forceinline__ float code_value(const CellCodes& codes, int c, int v) {
  return from_f16((unsigned short)(codes.of[v / 4 * 4 + v % 4 / 2 * 2 + c] >> v % 2 * 16 & 0xffffu));
}
)";

constexpr std::string_view kScales = R"(
struct CellScales {{ float factor[HALVES], offset[HALVES], zero; }};
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
  if (parts.scale == BlockParts::Scale::kWord) {
    return fmt::format("  scales.factor[0] = *(const float*)({});\n  scales.offset[0] = 0.0f;\n",
                       scale);
  }
  if (parts.scale == BlockParts::Scale::kWordAndZero) {
    return fmt::format(
        "  const unsigned word = *(const unsigned*)({});\n"
        "  scales.factor[0] = __uint_as_float(word & 0xffffff00u);\n"
        "  scales.zero = number_of(word, 0, 0.0f);\n"
        "  scales.offset[0] = -scales.factor[0] * scales.zero;\n",
        scale);
  }
  if (parts.has_minimum) {
    const std::string text =
        fmt::format("  const unsigned word = *(const unsigned*)({});\n", scale) +
        "  const float d = from_f16((unsigned short)(word & 0xffffu)), m = "
        "from_f16((unsigned short)(word >> 16));\n";
    if (!slot.small) return text + "  scales.factor[0] = d, scales.offset[0] = m;\n";
    return text + small +
           "  scales.factor[0] = d * number_of(small, 0, 0.0f);\n"
           "  scales.offset[0] = -m * number_of(small, 1, 0.0f);\n";
  }
  const std::string d =
      fmt::format("  const float d = from_f16(*(const unsigned short*)({}));\n", scale);
  if (!slot.small) {
    return d + "  scales.factor[0] = d, scales.offset[0] = 0.0f;\n";
  }
  return d + small +
         "  #pragma unroll\n"
         "  for (int h = 0; h < 2; ++h) {\n"
         "    scales.factor[h] = d * number_of(small, h, 128.0f);\n"
         "    scales.offset[h] = 0.0f;\n"
         "  }\n";
}

std::string codes_text(const BlockParts& parts, const CudaSlot& slot) {
  if (parts.is_float) return std::string(kFloats);
  if (parts.bits == 8) return std::string(kBytes) + std::string(kByteValue);
  std::string rest;
  if (parts.bits == 6) rest = fmt::format(fmt::runtime(kSixBits), slot.low_at);
  if (parts.bits == 5) rest = fmt::format(fmt::runtime(kFiveBits), slot.low_at);
  return fmt::format(fmt::runtime(kFewBits), fmt::arg("rest", rest)) + std::string(kByteValue);
}

constexpr std::string_view kValue = R"(
__device__ __forceinline__ float block_value(const void* base, long column, int input) {
  const char* slot = (const char*)base + (column / 16 * SLOTS + input / 128) * SLOT_BYTES;
  const int cell = input % 128 / 32, i = input % 32, v = i / 16 * 4 + i % 4, of_group = (int)(column % 16);
  CellCodes codes;
  cell_codes(slot, cell, of_group % 8 * 4 + i % 16 / 4, codes);
  float code = 0.0f;
  #pragma unroll
  for (int n = 0; n < 8; ++n) {
    if (v == n) code = of_group < 8 ? code_value(codes, 0, n) : code_value(codes, 1, n);
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
  slot.low_at = upper_bytes(parts);
  slot.scales_at = slot.low_at + lower_bytes(parts);
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
  return fmt::format(
             "\nenum {{ SLOT_BYTES = {}, SLOTS = {}, HALVES = {}, FLOATS = {}, OFFSETS = {},\n"
             "       ZEROS = {}, CODE_SHIFT = {} }};\n"
             "struct CellCodes {{ unsigned of[FLOATS ? 8 : 4]; }};",
             slot.bytes, CudaSlot::count(inputs), format == WeightFormat::kQ6_K ? 2 : 1,
             parts.is_float ? 1 : 0, parts.has_offset() ? 1 : 0,
             parts.scale == BlockParts::Scale::kWordAndZero ? 1 : 0, code_shift(parts)) +
         std::string(kNumbers) + codes_text(parts, slot) +
         fmt::format(fmt::runtime(kScales), fmt::arg("body", scales_body(parts, slot)));
}

std::string cuda_block_value_text() {
  return std::string(kValue);
}

}  // namespace assay::engine
