// Random weights by blocks; every floating-point operation here is exact but the last rounding.
#include "engine/model/random_weights.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <span>

#include "base/random.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

// Four uniform 16-bit integers: mean 4 * 65535 / 2, variance 2^32 / 3.
constexpr int32_t kCentre = 2 * 65535;
constexpr int kSmallShift = 21;  // sqrt(2^32 / 3) * 2^-21 = 0.018

int32_t draw(Random& random) {
  const uint64_t bits = random();
  return static_cast<int32_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) +
                              (bits >> 48)) -
         kCentre;
}

// For two inputs or more, the smallest shift with inputs * variance <= 2, where variance = 2^32 / 3
// * 2^(-2 shift); it is above 1/2 then, as one shift is a factor of four.
int product_shift(uint64_t inputs) {
  int shift = 16;
  while ((uint64_t{6} << (2 * (shift - 16))) < inputs) ++shift;
  return shift;
}

void fill_block(const WeightFill& fill, uint64_t block, std::span<float> out) {
  if (fill.ones) {
    std::ranges::fill(out, 1.0f);
    return;
  }
  Random random(fill.seed, fill.stream << 32 | block);
  const float scale = std::ldexp(1.0f, -fill.shift);
  for (float& value : out) value = static_cast<float>(draw(random)) * scale;
}

}  // namespace

WeightFill weight_fill(const TensorSpec& spec, size_t index, Architecture architecture,
                       uint64_t seed) {
  WeightFill fill{.shift = kSmallShift, .seed = seed, .stream = index};
  const bool embedding = spec.name.ends_with("wte.weight") || spec.name.ends_with("wpe.weight") ||
                         spec.name.ends_with("embed_tokens.weight");
  if (spec.shape.rank() == 1) {
    fill.ones = spec.name.ends_with(".weight");  // a norm's; else a bias
  } else if (!embedding) {
    const bool in_first = architecture == Architecture::kGpt2 && spec.name != "lm_head.weight";
    fill.shift = product_shift(static_cast<uint64_t>(spec.shape[in_first ? 0 : 1]));
  }
  return fill;
}

void fill_weights(const WeightFill& fill, uint64_t begin, uint64_t count, DType dtype,
                  std::byte* out, ThreadPool& pool) {
  assert(begin % kFillBlock == 0);
  const size_t element_bytes = dtype_size_bytes(dtype);
  pool.parallel_for(count, kFillBlock, [&](size_t from, size_t to) {
    std::array<float, kFillBlock> values;
    for (size_t at = from; at < to; at += kFillBlock) {
      const size_t n = std::min<size_t>(kFillBlock, to - at);
      fill_block(fill, (begin + at) / kFillBlock, std::span(values).first(n));
      const TensorView view{reinterpret_cast<const std::byte*>(values.data()), DType::kF32,
                            Shape{static_cast<int64_t>(n)}};
      convert(view, dtype, out + at * element_bytes);
    }
  });
}

}  // namespace assay::engine
