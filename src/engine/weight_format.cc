// Decoding, block by block.
#include "engine/weight_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/block_cells.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

using Bytes = const std::byte*;

uint8_t u8(Bytes at) {
  return std::to_integer<uint8_t>(*at);
}
int i8(Bytes at) {
  return static_cast<int8_t>(u8(at));
}
uint16_t u16(Bytes at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}
float half(Bytes at) {
  return f16_to_f32(u16(at));
}

// d, i8[32]
void decode_q8_0(Bytes block, float* out) {
  const float d = half(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(i8(block + 2 + i)) * d;
}

// Blocks of 32 with 4 or 5 bits a value: d, (m), (the fifth bits, u32), 16 bytes with the first 16
// values in their low halves.
template <bool has_minimum, bool has_fifth>
void decode_small(Bytes block, float* out) {
  const float d = half(block);
  const float m = has_minimum ? half(block + 2) : 0.0f;
  block += has_minimum ? 4 : 2;
  uint32_t fifth = 0;
  if (has_fifth) {
    std::memcpy(&fifth, block, sizeof fifth);
    block += 4;
  }
  constexpr int kZero = has_minimum ? 0 : has_fifth ? 16 : 8;
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? u8(block + i) & 0xF : u8(block + i - 16) >> 4;
    const int q = low | static_cast<int>(fifth >> i & 1) << 4;
    out[i] = static_cast<float>(q - kZero) * d + m;
  }
}

// d, 16 bytes with the first 16 values in their low halves.
void decode_iq4_nl(Bytes block, float* out) {
  const float d = half(block);
  for (int i = 0; i < 32; ++i) {
    const int code = i < 16 ? u8(block + 2 + i) & 0xF : u8(block + 2 + i - 16) >> 4;
    out[i] = static_cast<float>(kUnevenSteps[static_cast<size_t>(code)]) * d;
  }
}

// d, dmin, 12 bytes of scales, (32 of fifth bits, a bit a group of 32), 128 of low nibbles: 32
// bytes hold 64 values, the first 32 in their low halves.
template <bool has_fifth>
void decode_k45(Bytes block, float* out) {
  const float d = half(block), d_min = half(block + 2);
  const Bytes scales = block + 4;
  const Bytes fifth = block + 16;
  const Bytes low = block + (has_fifth ? 48 : 16);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = scale_and_minimum(scales, group);
    const float step = d * scale, m = d_min * minimum;
    for (int i = 0; i < 32; ++i) {
      const int byte = u8(low + group / 2 * 32 + i);
      int q = group % 2 == 0 ? byte & 0xF : byte >> 4;
      if (has_fifth) q |= (u8(fifth + i) >> group & 1) << 4;
      *out++ = step * static_cast<float>(q) - m;
    }
  }
}

// 128 bytes of low nibbles, 64 of high pairs, i8 scales[16], d; per 128 values 64 and 32 of them.
void decode_q6_k(Bytes block, float* out) {
  const float d = half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int upper = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int byte = u8(block + upper * 64 + quarter % 2 * 32 + at);
    const int low = quarter < 2 ? byte & 0xF : byte >> 4;
    const int high = u8(block + 128 + upper * 32 + at) >> 2 * quarter & 3;
    const int scale = i8(block + 192 + i / 16);
    out[i] = d * static_cast<float>(scale) * static_cast<float>((low | high << 4) - 32);
  }
}

template <int values>
void decode_int4(Bytes block, float* out) {
  uint32_t word;
  std::memcpy(&word, block, sizeof word);
  const auto scale = std::bit_cast<float>(word & 0xffffff00u);
  const int zero = static_cast<int>(word & 0xff);
  for (int i = 0; i < values; ++i) {
    const int byte = u8(block + 4 + i / 2);
    out[i] = static_cast<float>((i % 2 == 0 ? byte & 0xF : byte >> 4) - zero) * scale;
  }
}

template <int values>
void decode_fp8(Bytes block, float* out) {
  float scale;
  std::memcpy(&scale, block, sizeof scale);
  for (int i = 0; i < values; ++i) out[i] = e4m3_to_f32(u8(block + 4 + i)) * scale;
}

template <typename Decode>
void each_block(WeightFormat format, Bytes blocks, int64_t count, float* out,
                const Decode& decode_one) {
  const FormatTraits& t = traits(format);
  for (int64_t i = 0; i < count; i += t.block_values, blocks += t.block_bytes) {
    decode_one(blocks, out + i);
  }
}

}  // namespace

std::optional<WeightFormat> parse_weight_format(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &FormatTraits::name);
  return found == kFormats.end() ? std::nullopt : std::optional(found->format);
}

std::optional<WeightFormat> weight_format_of_gguf(uint32_t type) {
  const auto* found = std::ranges::find(kFormats, type, &FormatTraits::gguf_type);
  if (type == kNoGgufType) return std::nullopt;
  return found == kFormats.end() ? std::nullopt : std::optional(found->format);
}

WeightFormat weight_format(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return WeightFormat::kF32;
    case DType::kF16:
      return WeightFormat::kF16;
    case DType::kBF16:
      return WeightFormat::kBF16;
    case DType::kI32:
      break;
  }
  assert(false && "not a float type");
  return WeightFormat::kF32;
}

std::optional<WeightFormat> int4_format(int64_t group) {
  if (group % 128 == 0) return WeightFormat::kInt4_G128;
  if (group % 64 == 0) return WeightFormat::kInt4_G64;
  return group % 32 == 0 ? std::optional(WeightFormat::kInt4_G32) : std::nullopt;
}

std::optional<WeightFormat> fp8_format(int64_t group) {
  if (group % 128 == 0) return WeightFormat::kFp8_G128;
  return group % 32 == 0 ? std::optional(WeightFormat::kFp8_G32) : std::nullopt;
}

uint32_t int4_word(float scale, uint8_t zero) {
  const auto bits = std::bit_cast<uint32_t>(scale);
  if (!std::isfinite(scale))
    return (bits & 0xffc00000u) | (std::isnan(scale) ? 0x400000u : 0) | zero;
  return ((bits + 0x7f + (bits >> 8 & 1)) & 0xffffff00u) | zero;
}

float e4m3_to_f32(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float sign = bits >= 128 ? -1.0f : 1.0f;
  if ((bits & 0x7f) == 0x7f) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  return exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -9)
                       : sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

std::optional<uint64_t> stored_bytes(WeightFormat format, std::span<const int64_t> dims) {
  const FormatTraits& t = traits(format);
  const int64_t row = dims.empty() ? 1 : dims.back();
  if (row % t.block_values != 0) return std::nullopt;
  int64_t bytes = static_cast<int64_t>(t.block_bytes);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t factor = i + 1 == dims.size() ? dims[i] / t.block_values : dims[i];
    if (factor < 0 || __builtin_mul_overflow(bytes, factor, &bytes)) return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

void decode(WeightFormat format, const std::byte* blocks, int64_t count, float* out) {
  assert(count % traits(format).block_values == 0);
  switch (format) {
    case WeightFormat::kF32:
      if (count > 0) std::memcpy(out, blocks, static_cast<size_t>(count) * sizeof(float));
      return;
    case WeightFormat::kF16:
      return each_block(format, blocks, count, out, [](Bytes b, float* o) { *o = half(b); });
    case WeightFormat::kBF16:
      return each_block(format, blocks, count, out,
                        [](Bytes b, float* o) { *o = bf16_to_f32(u16(b)); });
    case WeightFormat::kQ8_0:
      return each_block(format, blocks, count, out, decode_q8_0);
    case WeightFormat::kQ4_0:
      return each_block(format, blocks, count, out, decode_small<false, false>);
    case WeightFormat::kQ4_1:
      return each_block(format, blocks, count, out, decode_small<true, false>);
    case WeightFormat::kQ5_0:
      return each_block(format, blocks, count, out, decode_small<false, true>);
    case WeightFormat::kQ5_1:
      return each_block(format, blocks, count, out, decode_small<true, true>);
    case WeightFormat::kQ4_K:
      return each_block(format, blocks, count, out, decode_k45<false>);
    case WeightFormat::kQ5_K:
      return each_block(format, blocks, count, out, decode_k45<true>);
    case WeightFormat::kQ6_K:
      return each_block(format, blocks, count, out, decode_q6_k);
    case WeightFormat::kIQ4_NL:
      return each_block(format, blocks, count, out, decode_iq4_nl);
    case WeightFormat::kInt4_G32:
      return each_block(format, blocks, count, out, decode_int4<32>);
    case WeightFormat::kInt4_G64:
      return each_block(format, blocks, count, out, decode_int4<64>);
    case WeightFormat::kInt4_G128:
      return each_block(format, blocks, count, out, decode_int4<128>);
    case WeightFormat::kFp8_G32:
      return each_block(format, blocks, count, out, decode_fp8<32>);
    case WeightFormat::kFp8_G128:
      return each_block(format, blocks, count, out, decode_fp8<128>);
  }
}

void decode_row(const TensorView& tensor, int64_t row, float* out) {
  const int64_t width = tensor.row_values();
  decode(tensor.format, tensor.row(row), width, out);
  if (tensor.input_order == nullptr) return;
  const std::vector<float> stored(out, out + width);
  for (int64_t i = 0; i < width; ++i) out[tensor.input_order[i]] = stored[static_cast<size_t>(i)];
}

}  // namespace assay::engine
