// A scale is chosen, rounded as the block stores it, and codes are chosen for the rounded one.
#include "engine/model/encode_blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/model/convert.h"

namespace assay::engine {
namespace {

using Out = std::byte*;

// Writes the scale, and gives it as it will be read.
float put_half(Out at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
  return f16_to_f32(bits);
}

void put_low(Out at, int value) {
  *at |= static_cast<std::byte>(value & 0xF);
}
void put_high(Out at, int value) {
  *at |= static_cast<std::byte>((value & 0xF) << 4);
}

// The nearest code of x / step; 0 where there is no step.
int nearest_code(float x, float step, int least, int most) {
  if (step == 0) return std::clamp(0, least, most);
  return static_cast<int>(
      std::clamp(std::nearbyint(x / step), static_cast<float>(least), static_cast<float>(most)));
}

// The value of the largest magnitude, with its sign.
float largest(const float* x, int count) {
  return *std::max_element(x, x + count,
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

void encode_q8_0(const float* x, Out block) {
  const float d = put_half(block, std::fabs(largest(x, 32)) / 127);
  for (int i = 0; i < 32; ++i)
    block[2 + i] = static_cast<std::byte>(nearest_code(x[i], d, -127, 127));
}

// q4_0 and q5_0: the largest value gets the least code, which has one more of its sign.
template <int middle>
void encode_small(const float* x, Out block) {
  const float d = put_half(block, largest(x, 32) / -middle);
  const Out low = block + (middle == 16 ? 6 : 2);
  uint32_t fifth = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = nearest_code(x[i], d, -middle, middle - 1) + middle;
    i < 16 ? put_low(low + i, q) : put_high(low + i - 16, q);
    fifth |= static_cast<uint32_t>(q >> 4) << i;
  }
  if (middle == 16) std::memcpy(block + 2, &fifth, sizeof fifth);
}

// The code of iq4_nl whose value is nearest to x / d.
size_t nearest_uneven(float x, float d) {
  const float wished = d == 0 ? 0 : x / d;
  const auto* found = std::ranges::min_element(
      kUnevenSteps, {}, [&](int8_t step) { return std::fabs(static_cast<float>(step) - wished); });
  return static_cast<size_t>(found - kUnevenSteps.begin());
}

// iq4_nl: the largest value gets the first code or the last, and then the scale is the one of least
// squares for these codes.
void encode_iq4_nl(const float* x, Out block) {
  double least = std::numeric_limits<double>::infinity();
  float best = 0;
  for (const int8_t end : {kUnevenSteps.front(), kUnevenSteps.back()}) {
    const float first = largest(x, 32) / static_cast<float>(end);
    double products = 0, squares = 0;
    for (int i = 0; i < 32; ++i) {
      const double step = kUnevenSteps[nearest_uneven(x[i], first)];
      products += step * x[i];
      squares += step * step;
    }
    const auto d = static_cast<float>(products / squares);
    double error = 0;
    for (int i = 0; i < 32; ++i) {
      const double off = double{x[i]} - double{d} * kUnevenSteps[nearest_uneven(x[i], d)];
      error += off * off;
    }
    if (error < least) best = d;
    least = std::min(least, error);
  }
  const float d = put_half(block, best);
  for (int i = 0; i < 32; ++i) {
    const int code = static_cast<int>(nearest_uneven(x[i], d));
    i < 16 ? put_low(block + 2 + i, code) : put_high(block + 2 + i - 16, code);
  }
}

// q4_1 and q5_1: the least value has the least code, the largest the last.
template <int most>
void encode_with_minimum(const float* x, Out block) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = put_half(block, (*high - *low) / most), m = put_half(block + 2, *low);
  const Out codes = block + (most == 31 ? 8 : 4);
  uint32_t fifth = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = nearest_code(x[i] - m, d, 0, most);
    i < 16 ? put_low(codes + i, q) : put_high(codes + i - 16, q);
    fifth |= static_cast<uint32_t>(q >> 4) << i;
  }
  if (most == 31) std::memcpy(block + 4, &fifth, sizeof fifth);
}

// x = scale * code - minimum, for codes from 0.
struct AffineFit {
  float scale = 0, minimum = 0;
};

AffineFit fit_affine(const float* x, int count, int most) {
  const float low = std::min(0.0f, *std::min_element(x, x + count));
  const float high = *std::max_element(x, x + count);
  if (high <= low) return {0, -low};
  double squares = 0;
  for (int i = 0; i < count; ++i) squares += double{x[i]} * x[i];
  const double mean = std::sqrt(squares / count);
  AffineFit best{(high - low) / static_cast<float>(most), -low};
  double least = -1;
  for (int tried = -8; tried <= 16; ++tried) {
    const float step = (high - low) / (static_cast<float>(most) + 0.1f * static_cast<float>(tried));
    std::array<int, 32> codes{};
    double w = 0, q1 = 0, q2 = 0, x1 = 0, qx = 0;  // weighted sums
    for (int i = 0; i < count; ++i) {
      const int q = nearest_code(x[i] - low, step, 0, most);
      const double weight = mean + std::fabs(x[i]);
      codes[static_cast<size_t>(i)] = q;
      w += weight;
      q1 += weight * q;
      q2 += weight * q * q;
      x1 += weight * x[i];
      qx += weight * q * x[i];
    }
    const double determinant = w * q2 - q1 * q1;
    if (determinant <= 0) continue;
    double scale = (w * qx - q1 * x1) / determinant;
    double offset = (q2 * x1 - q1 * qx) / determinant;
    if (offset > 0) {  // a minimum isn't negative
      offset = 0;
      scale = qx / q2;
    }
    double error = 0;
    for (int i = 0; i < count; ++i) {
      const double off = scale * codes[static_cast<size_t>(i)] + offset - x[i];
      error += (mean + std::fabs(x[i])) * off * off;
    }
    if (scale <= 0 || (least >= 0 && error >= least)) continue;
    least = error;
    best = {static_cast<float>(scale), static_cast<float>(-offset)};
  }
  return best;
}

// Pair `j` of a block's eight, 6 bits each, as weight_format.cc reads them.
void put_scale_min(Out scales, int j, int scale, int minimum) {
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
  std::array<AffineFit, 8> fits;
  float scale = 0, minimum = 0;
  for (size_t group = 0; group < 8; ++group) {
    fits[group] = fit_affine(x + group * 32, 32, kMost);
    scale = std::max(scale, fits[group].scale);
    minimum = std::max(minimum, fits[group].minimum);
  }
  const float d = put_half(block, scale / 63), d_min = put_half(block + 2, minimum / 63);
  const Out low = block + (has_fifth ? 48 : 16);
  for (int group = 0; group < 8; ++group) {
    const AffineFit& fit = fits[static_cast<size_t>(group)];
    const int s = nearest_code(fit.scale, d, 0, 63), m = nearest_code(fit.minimum, d_min, 0, 63);
    put_scale_min(block + 4, group, s, m);
    const float step = d * static_cast<float>(s), offset = d_min * static_cast<float>(m);
    for (int i = 0; i < 32; ++i) {
      const int q = nearest_code(x[group * 32 + i] + offset, step, 0, kMost);
      const Out at = low + group / 2 * 32 + i;
      group % 2 == 0 ? put_low(at, q) : put_high(at, q);
      if (has_fifth) block[16 + i] |= static_cast<std::byte>(q >> 4 << group);
    }
  }
}

// A scale for codes from -32 to 31.
float fit_symmetric(const float* x, int count) {
  const float most = largest(x, count);
  if (most == 0) return 0;
  float best = most / -32;
  double least = -1;
  for (int tried = -9; tried <= 9; ++tried) {
    const float step = most / -(32 + 0.1f * static_cast<float>(tried));
    double q2 = 0, qx = 0, x2 = 0;  // each value weighs as its square
    for (int i = 0; i < count; ++i) {
      const int q = nearest_code(x[i], step, -32, 31);
      const double weight = double{x[i]} * x[i];
      q2 += weight * q * q;
      qx += weight * q * x[i];
      x2 += weight * x[i] * x[i];
    }
    if (q2 == 0) continue;
    const double error = x2 - qx * qx / q2;
    if (least >= 0 && error >= least) continue;
    least = error;
    best = static_cast<float>(qx / q2);
  }
  return best;
}

void encode_q6_k(const float* x, Out block) {
  std::array<float, 16> scales{};
  for (size_t group = 0; group < 16; ++group) scales[group] = fit_symmetric(x + group * 16, 16);
  const float d = put_half(block + 208, largest(scales.data(), 16) / -128);
  for (int i = 0; i < 256; ++i) {
    const int s = nearest_code(scales[static_cast<size_t>(i / 16)], d, -128, 127);
    block[192 + i / 16] = static_cast<std::byte>(s);
    const int q = nearest_code(x[i], d * static_cast<float>(s), -32, 31) + 32;
    const int upper = i / 128, quarter = i % 128 / 32, at = i % 32;
    const Out low = block + upper * 64 + quarter % 2 * 32 + at;
    quarter < 2 ? put_low(low, q) : put_high(low, q);
    block[128 + upper * 32 + at] |= static_cast<std::byte>(q >> 4 << 2 * quarter);
  }
}

}  // namespace

bool can_encode(WeightFormat format) {
  return traits(format).gguf_type != kNoGgufType;
}

void encode(WeightFormat format, const float* values, int64_t count, std::byte* out) {
  assert(can_encode(format) && count % traits(format).block_values == 0);
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

}  // namespace assay::engine
