#include "engine/model/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace assay::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The value of a binary16's bits, from the definition.
double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

TEST(Convert, EveryHalfWidensExactlyAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (std::isnan(f16_value(half))) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide)))) << bits;
      continue;
    }
    ASSERT_EQ(wide, f16_value(half)) << bits;
    ASSERT_EQ(std::signbit(wide), (half & 0x8000) != 0) << bits;
    ASSERT_EQ(f32_to_f16(wide), half) << bits;
  }
}

TEST(Convert, HalfRoundsToNearestTiesToEven) {
  // Between each pair of neighbours: just under the middle, the middle, just over it.
  for (uint32_t bits = 0; bits < 0x7C00 - 1; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((f16_value(low) + f16_value(high)) / 2);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(f32_to_f16(middle), bits % 2 ? high : low) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), high) << bits;
    ASSERT_EQ(f32_to_f16(-middle), 0x8000u | (bits % 2 ? high : low)) << bits;
  }
}

TEST(Convert, HalfOverflowsToInfinity) {
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(1e30f), 0x7C00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xFC00);
}

TEST(Convert, Bf16RoundsToNearestTiesToEven) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const auto value = std::bit_cast<float>(bits);
    const uint16_t narrow = f32_to_bf16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(narrow))) << bits;
      continue;
    }
    const uint16_t down = static_cast<uint16_t>(bits >> 16);
    const uint32_t rest = bits & 0xFFFFu;
    const bool up = rest > 0x8000u || (rest == 0x8000u && down % 2 == 1);
    ASSERT_EQ(narrow, static_cast<uint16_t>(down + (up ? 1 : 0))) << bits;
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // ties to even, down
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);  // and up
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(Convert, NanWithLowPayloadStaysNan) {
  const auto nan = std::bit_cast<float>(0xFF800001u);
  EXPECT_EQ(f32_to_bf16(nan) & 0xFFC0, 0xFFC0);
  EXPECT_EQ(f32_to_f16(nan) & 0xFE00, 0xFE00);
}

TEST(Convert, TensorsBetweenAllTypes) {
  const std::vector<float> values = {0.0f, -0.0f, 1.5f, -2.25f, 1024.0f, kInfinity, kNan};
  const Shape shape{static_cast<int64_t>(values.size())};
  const TensorView wide{reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
  for (const DType through : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType then : {DType::kF32, DType::kF16, DType::kBF16}) {
      std::vector<std::byte> first(values.size() * 4), second(values.size() * 4);
      convert(wide, through, first.data());
      convert({first.data(), through, shape}, then, second.data());
      std::vector<float> back(values.size());
      convert({second.data(), then, shape}, DType::kF32, reinterpret_cast<std::byte*>(back.data()));
      for (size_t i = 0; i + 1 < values.size(); ++i) EXPECT_EQ(back[i], values[i]);
      EXPECT_TRUE(std::isnan(back.back()));
    }
  }
}

TEST(Convert, ReadsAndWritesUnalignedBytes) {
  const float value = 1.5f;
  std::vector<std::byte> in(5), out(3);
  std::copy_n(reinterpret_cast<const std::byte*>(&value), 4, in.begin() + 1);
  convert({in.data() + 1, DType::kF32, Shape{1}}, DType::kBF16, out.data() + 1);
  EXPECT_EQ(std::to_integer<int>(out[1]), 0xC0);
  EXPECT_EQ(std::to_integer<int>(out[2]), 0x3F);
}

}  // namespace
}  // namespace assay::engine
