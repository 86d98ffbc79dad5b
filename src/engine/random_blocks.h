// Weights of random bytes in any format, for tests: every code occurs, and scales are finite.
#pragma once

#include <cstring>
#include <vector>

#include "base/random.h"
#include "engine/model/convert.h"
#include "engine/weight_format.h"

namespace assay::engine {

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
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  const bool is_k = t.block_values == 256;
  const size_t scale_at = format == WeightFormat::kQ6_K ? 208 : 0;
  const bool has_second = format == WeightFormat::kQ4_1 || format == WeightFormat::kQ5_1 ||
                          format == WeightFormat::kQ4_K || format == WeightFormat::kQ5_K;
  // The largest code, times the largest scale of a group.
  const double most = format == WeightFormat::kQ8_0   ? 128
                      : format == WeightFormat::kQ6_K ? 32.0 * 128
                      : is_k                          ? 31.0 * 63
                                                      : 16;
  for (size_t block = 0; block < blocks; ++block) {
    for (size_t i = 0; i < (has_second ? 2u : 1u); ++i) {
      const auto scale = static_cast<float>((random.uniform() * 2 - 1) * spread / most);
      const uint16_t bits = f32_to_f16(scale);
      std::memcpy(bytes.data() + block * t.block_bytes + scale_at + 2 * i, &bits, sizeof bits);
    }
  }
  return bytes;
}

}  // namespace assay::engine
