// A scale is chosen, rounded as the block stores it, and codes are chosen for the rounded one.
// Nothing here may be fused (-ffp-contract=off): every target writes the same bytes.
#include "engine/model/encode_blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/model/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/model/encode_blocks.cc"
#include "hwy/foreach_target.h"  // must come first

#include "engine/model/fit_scales-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {

using Out = std::byte*;

// Writes the scale, and gives it as it will be read.
inline float put_half(Out at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
  return f16_to_f32(bits);
}

// The nearest code of x / step; 0 where there is no step.
inline int nearest_code(float x, float step, int least, int most) {
  if (step == 0) return std::clamp(0, least, most);
  return static_cast<int>(
      std::clamp(std::nearbyint(x / step), static_cast<float>(least), static_cast<float>(most)));
}

// The codes nearest to (x + offset) / step; of 0 where there is no step.
template <size_t count>
HWY_INLINE void nearest_codes(const float* x, float offset, float step, int least, int most,
                              int8_t* codes) {
  const hn::CappedTag<float, count> d;
  const hn::Rebind<int32_t, decltype(d)> wide;
  const hn::Rebind<int8_t, decltype(d)> narrow;
  const auto inverse = hn::Set(d, step == 0 ? 0 : 1 / step), more = hn::Set(d, offset);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto wished = hn::Mul(hn::Add(hn::LoadU(d, x + i), more), inverse);
    const auto code = nearest(d, wished, static_cast<float>(least), static_cast<float>(most));
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(wide, code)), narrow, codes + i);
  }
}

struct Extremes {
  float low = 0, high = 0;
  // The value of the largest magnitude, with its sign.
  float largest() const { return high > -low ? high : low; }
};

inline Extremes extremes(const float* x) {
  const hn::CappedTag<float, 32> d;
  auto low = hn::LoadU(d, x), high = low;
  for (size_t i = hn::Lanes(d); i < 32; i += hn::Lanes(d)) {
    low = hn::Min(low, hn::LoadU(d, x + i));
    high = hn::Max(high, hn::LoadU(d, x + i));
  }
  return {hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high))};
}

// Codes of 4 or 5 bits of a block of 32, two in a byte, the first 16 in the low halves. A fifth bit
// goes to the word before them.
template <bool has_fifth>
void put_small(const int8_t* codes, Out low) {
  for (int i = 0; i < 16; ++i) {
    low[i] = static_cast<std::byte>((codes[i] & 0xF) | (codes[i + 16] & 0xF) << 4);
  }
  if (!has_fifth) return;
  uint32_t fifth = 0;
  for (int i = 0; i < 32; ++i) fifth |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(low - 4, &fifth, sizeof fifth);
}

void encode_q8_0(const float* x, Out block) {
  const float d = put_half(block, std::fabs(extremes(x).largest()) / 127);
  nearest_codes<32>(x, 0, d, -127, 127, reinterpret_cast<int8_t*>(block + 2));
}

// q4_0 and q5_0: the largest value gets the least code, which has one more of its sign.
template <int middle>
void encode_small(const float* x, Out block) {
  const float d = put_half(block, extremes(x).largest() / -middle);
  std::array<int8_t, 32> codes;
  nearest_codes<32>(x, middle * d, d, 0, 2 * middle - 1, codes.data());
  put_small<middle == 16>(codes.data(), block + (middle == 16 ? 6 : 2));
}

// The codes of iq4_nl whose values are nearest to x / d: as many as there are midpoints below.
inline void uneven_codes(const float* x, float d, int8_t* codes) {
  const hn::CappedTag<float, 32> floats;
  const hn::Rebind<int32_t, decltype(floats)> wide;
  const hn::Rebind<int8_t, decltype(floats)> narrow;
  const auto inverse = hn::Set(floats, d == 0 ? 0 : 1 / d), one = hn::Set(floats, 1);
  for (size_t i = 0; i < 32; i += hn::Lanes(floats)) {
    const auto wished = hn::Mul(hn::LoadU(floats, x + i), inverse);
    auto code = hn::Zero(floats);
    for (size_t k = 1; k < kUnevenSteps.size(); ++k) {
      const auto middle = static_cast<float>(kUnevenSteps[k - 1] + kUnevenSteps[k]) / 2;
      const auto above = hn::Gt(wished, hn::Set(floats, middle));
      code = hn::Add(code, hn::IfThenElseZero(above, one));
    }
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(wide, code)), narrow, codes + i);
  }
}

// iq4_nl: the largest value gets the first code or the last, and then the scale is the one of least
// squares for these codes.
void encode_iq4_nl(const float* x, Out block) {
  std::array<int8_t, 32> codes;
  const auto step_of = [&](size_t i) {
    return static_cast<double>(kUnevenSteps[static_cast<size_t>(codes[i])]);
  };
  double least = std::numeric_limits<double>::infinity();
  float best = 0;
  for (const int8_t end : {kUnevenSteps.front(), kUnevenSteps.back()}) {
    uneven_codes(x, extremes(x).largest() / static_cast<float>(end), codes.data());
    double products = 0, squares = 0;
    for (size_t i = 0; i < 32; ++i) {
      products += step_of(i) * x[i];
      squares += step_of(i) * step_of(i);
    }
    const auto d = static_cast<float>(products / squares);
    uneven_codes(x, d, codes.data());
    double error = 0;
    for (size_t i = 0; i < 32; ++i) {
      const double off = x[i] - d * step_of(i);
      error += off * off;
    }
    if (error < least) best = d;
    least = std::min(least, error);
  }
  uneven_codes(x, put_half(block, best), codes.data());
  put_small<false>(codes.data(), block + 2);
}

// q4_1 and q5_1: the least value has the least code, the largest the last.
template <int most>
void encode_with_minimum(const float* x, Out block) {
  const auto [low, high] = extremes(x);
  const float d = put_half(block, (high - low) / most), m = put_half(block + 2, low);
  std::array<int8_t, 32> codes;
  nearest_codes<32>(x, -m, d, 0, most, codes.data());
  put_small<most == 31>(codes.data(), block + (most == 31 ? 8 : 4));
}

// Pair `j` of a block's eight, 6 bits each, as weight_format.cc reads them.
inline void put_scale_min(Out scales, int j, int scale, int minimum) {
  if (j < 4) {
    scales[j] |= static_cast<std::byte>(scale);
    scales[j + 4] |= static_cast<std::byte>(minimum);
    return;
  }
  scales[j + 4] |= static_cast<std::byte>((scale & 0xF) | (minimum & 0xF) << 4);
  scales[j - 4] |= static_cast<std::byte>(scale >> 4 << 6);
  scales[j] |= static_cast<std::byte>(minimum >> 4 << 6);
}

template <bool has_fifth>
void encode_k45(const float* x, Out block) {
  constexpr int kMost = has_fifth ? 31 : 15;
  AffineFits fits;
  fit_affine(x, kMost, fits);
  const float d = put_half(block, std::ranges::max(fits.scale) / 63);
  const float d_min = put_half(block + 2, std::ranges::max(fits.minimum) / 63);
  std::array<int8_t, 256> codes;
  for (size_t group = 0; group < 8; ++group) {
    const float scale = fits.scale[group], mean = fits.mean[group];
    const int s = nearest_code(scale, d, 0, 63);
    const float step = d * static_cast<float>(s);
    // The rounded scale turns the line about the values' mean.
    const float minimum =
        scale > 0 ? (mean + fits.minimum[group]) * (step / scale) - mean : fits.minimum[group];
    const int m = nearest_code(minimum, d_min, 0, 63);
    put_scale_min(block + 4, static_cast<int>(group), s, m);
    nearest_codes<32>(x + group * 32, d_min * static_cast<float>(m), step, 0, kMost,
                      codes.data() + group * 32);
  }
  const Out low = block + (has_fifth ? 48 : 16);
  for (size_t i = 0; i < 128; ++i) {
    const int8_t* const code = codes.data() + i / 32 * 64 + i % 32;
    low[i] = static_cast<std::byte>((code[0] & 0xF) | (code[32] & 0xF) << 4);
  }
  if (!has_fifth) return;
  for (size_t i = 0; i < 256; ++i)
    block[16 + i % 32] |= static_cast<std::byte>(codes[i] >> 4 << i / 32);
}

void encode_q6_k(const float* x, Out block) {
  SymmetricFits fits;
  fit_symmetric(x, fits);
  const auto [low, high] = std::ranges::minmax(fits.scale);
  const float d = put_half(block + 208, (high >= -low ? high : low) / -128);
  std::array<int8_t, 256> codes;
  for (size_t group = 0; group < 16; ++group) {
    const int s = nearest_code(fits.scale[group], d, -128, 127);
    block[192 + group] = static_cast<std::byte>(s);
    const float step = d * static_cast<float>(s);
    nearest_codes<16>(x + group * 16, 32 * step, step, 0, 63, codes.data() + group * 16);
  }
  for (size_t i = 0; i < 64; ++i) {  // a half's quarters of 32 beside one another
    const int8_t* const code = codes.data() + i / 32 * 128 + i % 32;
    const Out at = block + i / 32 * 64 + i % 32;
    at[0] = static_cast<std::byte>((code[0] & 0xF) | (code[64] & 0xF) << 4);
    at[32] = static_cast<std::byte>((code[32] & 0xF) | (code[96] & 0xF) << 4);
    block[128 + i] = static_cast<std::byte>(code[0] >> 4 | code[32] >> 4 << 2 | code[64] >> 4 << 4 |
                                            code[96] >> 4 << 6);
  }
}

void encode_blocks(WeightFormat format, const float* values, int64_t count, Out out) {
  const FormatTraits& t = traits(format);
  const auto each = [&](const auto& encode_one) {
    std::memset(out, 0, static_cast<size_t>(count / t.block_values) * t.block_bytes);
    for (int64_t i = 0; i < count; i += t.block_values, out += t.block_bytes) {
      encode_one(values + i, out);
    }
  };
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return convert({reinterpret_cast<const std::byte*>(values), DType::kF32, Shape{count}},
                     t.element, out);
    case WeightFormat::kQ8_0:
      return each(encode_q8_0);
    case WeightFormat::kQ4_0:
      return each(encode_small<8>);
    case WeightFormat::kQ5_0:
      return each(encode_small<16>);
    case WeightFormat::kQ4_K:
      return each(encode_k45<false>);
    case WeightFormat::kQ5_K:
      return each(encode_k45<true>);
    case WeightFormat::kQ6_K:
      return each(encode_q6_k);
    case WeightFormat::kIQ4_NL:
      return each(encode_iq4_nl);
    case WeightFormat::kQ4_1:
      return each(encode_with_minimum<15>);
    case WeightFormat::kQ5_1:
      return each(encode_with_minimum<31>);
    case WeightFormat::kInt4_G32:
    case WeightFormat::kInt4_G64:
    case WeightFormat::kInt4_G128:
    case WeightFormat::kFp8_G32:
    case WeightFormat::kFp8_G128:
      break;
  }
  assert(false && "no such encoder");
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(encode_blocks);

bool can_encode(WeightFormat format) {
  return traits(format).gguf_type != kNoGgufType;
}

void encode(WeightFormat format, const float* values, int64_t count, std::byte* out) {
  assert(can_encode(format) && count % traits(format).block_values == 0);
  HWY_DYNAMIC_DISPATCH(encode_blocks)(format, values, count, out);
}

}  // namespace assay::engine
#endif  // HWY_ONCE
