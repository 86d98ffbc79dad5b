// Weights of random bytes in any format, for tests: every code occurs, and scales are finite.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/random.h"
#include "engine/model/convert.h"
#include "engine/weight_format.h"

namespace assay::engine {

// The scale of the block at `block`, rounded as the format stores it, and its minimum where there
// is one; a zero is kept.
inline void put_scale(WeightFormat format, std::byte* block, float scale, float minimum = 0) {
  const auto put_half = [](std::byte* at, float value) {
    const uint16_t bits = f32_to_f16(value);
    std::memcpy(at, &bits, sizeof bits);
  };
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      break;
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ5_0:
    case WeightFormat::kIQ4_NL:
      return put_half(block, scale);
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      put_half(block, scale);
      return put_half(block + 2, minimum);
    case WeightFormat::kQ6_K:
      return put_half(block + 208, scale);
    case WeightFormat::kInt4_G32:
    case WeightFormat::kInt4_G64:
    case WeightFormat::kInt4_G128: {
      const uint32_t word = int4_word(scale, std::to_integer<uint8_t>(block[0]));
      std::memcpy(block, &word, sizeof word);
      return;
    }
    case WeightFormat::kFp8_G32:
    case WeightFormat::kFp8_G128:
      std::memcpy(block, &scale, sizeof scale);
      return;
  }
}

inline bool is_fp8(WeightFormat format) {
  return format == WeightFormat::kFp8_G32 || format == WeightFormat::kFp8_G128;
}

// Random bytes of whole blocks, whose scales somebody sets behind; zeros of int4 are 0 to 16, and
// no e4m3 is a NaN.
inline void put_random_codes(Random& random, WeightFormat format, std::span<std::byte> blocks) {
  for (std::byte& byte : blocks) {
    byte = static_cast<std::byte>(random.below(256));
    if (is_fp8(format) && (byte & std::byte{0x7f}) == std::byte{0x7f}) byte = std::byte{0x7e};
  }
  if (int4_format(traits(format).block_values) != format) return;
  for (size_t at = 0; at < blocks.size(); at += traits(format).block_bytes) {
    blocks[at] = static_cast<std::byte>(random.below(17));
  }
}

// Bytes of a tensor, which must be of whole blocks. Values have about the size of `spread`.
inline std::vector<std::byte> random_blocks(Random& random, WeightFormat format, const Shape& shape,
                                            double spread = 1) {
  const FormatTraits& t = traits(format);
  const auto blocks = static_cast<size_t>(shape.elements() / t.block_values);
  std::vector<std::byte> bytes(blocks * t.block_bytes);
  if (!t.in_blocks()) {
    for (size_t i = 0; i < blocks; ++i) {
      const auto value = static_cast<float>((random.uniform() * 2 - 1) * spread);
      const TensorView view(reinterpret_cast<const std::byte*>(&value), DType::kF32, Shape{1});
      convert(view, t.element, bytes.data() + i * t.block_bytes);
    }
    return bytes;
  }
  put_random_codes(random, format, bytes);
  // The largest code, times the largest scale of a group.
  const double most = format == WeightFormat::kQ8_0     ? 128
                      : format == WeightFormat::kIQ4_NL ? 127
                      : format == WeightFormat::kQ6_K   ? 32.0 * 128
                      : t.block_values == 256           ? 31.0 * 63
                      : is_fp8(format)                  ? 448
                                                        : 16;
  for (size_t block = 0; block < blocks; ++block) {
    const auto scale = [&] {
      return static_cast<float>((random.uniform() * 2 - 1) * spread / most);
    };
    const float first = scale();
    put_scale(format, bytes.data() + block * t.block_bytes, first, scale());
  }
  return bytes;
}

}  // namespace assay::engine
