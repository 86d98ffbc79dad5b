// Encoded blocks decode to values near those that they were made of.
#include "engine/model/encode_blocks.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace assay::engine {
namespace {

// Root of the encoded values' mean squared error, over that of the values.
double relative_error(WeightFormat format, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> blocks(*stored_bytes(format, std::array{count}));
  encode(format, values.data(), count, blocks.data());
  std::vector<float> back(values.size());
  decode(format, blocks.data(), count, back.data());
  double error = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += (double{back[i]} - values[i]) * (double{back[i]} - values[i]);
    size += double{values[i]} * values[i];
  }
  return std::sqrt(error / size);
}

// Near to normal, of a spread that a matrix of a model has.
std::vector<float> weights_of(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.uniform() - 0.5;
    value = static_cast<float>(0.02 * sum);
  }
  return values;
}

// A uniform grid of b bits over a group's range leaves an error of its step over the root of 12;
// the bounds have a tenth more than was measured, and a format with a bit more halves it.
TEST(EncodeBlocks, ErrorIsThatOfTheFormatsBits) {
  const std::vector<float> values = weights_of(256 * 200, 1);
  const struct {
    WeightFormat format;
    double bound;
  } kBounds[] = {
      {WeightFormat::kF32, 0},       {WeightFormat::kBF16, 0.002}, {WeightFormat::kQ8_0, 0.0062},
      {WeightFormat::kQ6_K, 0.0205}, {WeightFormat::kQ5_0, 0.05},  {WeightFormat::kQ4_1, 0.088},
      {WeightFormat::kQ5_1, 0.043},  {WeightFormat::kQ5_K, 0.042}, {WeightFormat::kQ4_0, 0.1},
      {WeightFormat::kQ4_K, 0.083},  {WeightFormat::kIQ4_NL, 0.08}};
  for (const auto& [format, bound] : kBounds) {
    const double error = relative_error(format, values);
    EXPECT_LE(error, bound) << traits(format).name;
    EXPECT_GE(error, 0.6 * bound) << traits(format).name << ": the bound says little";
  }
}

TEST(EncodeBlocks, OddBlocksComeBack) {
  for (const FormatTraits& format : kFormats) {
    if (!can_encode(format.format)) continue;
    SCOPED_TRACE(format.name);
    std::vector<float> values(512);
    const auto error = [&] {
      values[0] = values[0] == 0 ? 0.1f : values[0];  // else there is nothing to compare with
      return relative_error(format.format, values);
    };
    // iq4_nl has no zero: the nearest is a step, of which the value has 127.
    const bool has_zero = format.format != WeightFormat::kIQ4_NL;
    EXPECT_LT(error(), has_zero ? 0.01 : 1.01 * std::sqrt(31.0) / 127) << "one value among zeros";
    std::fill(values.begin(), values.end(), 0.25f);
    EXPECT_LT(error(), 0.02) << "equal values";
    std::fill(values.begin(), values.end(), -3.5f);
    EXPECT_LT(error(), 0.02) << "equal negative values";
    std::fill(values.begin(), values.end(), 60'000.0f);
    EXPECT_LT(error(), 0.02) << "the largest";
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1.0f : -1.0f;
    EXPECT_LT(error(), 0.15) << "both signs";
  }
}

TEST(EncodeBlocks, EveryTargetWritesTheSameBytes) {
  // A block stores few bits of its sums: so many blocks show sums that one target fuses.
  constexpr size_t kBlocks = 16'384;
  std::vector<float> values = weights_of(256 * kBlocks, 3);
  // Small and large, with groups of zeros, of equal values and of one sign, and values halfway
  // between two codes, or just below.
  for (size_t i = 0; i < 256 * 24; ++i)
    values[i] *= std::ldexp(1.0f, static_cast<int>(i / 256) - 16);
  for (size_t i = 256 * 24; i < 256 * 32; ++i) {
    const size_t group = i / 32 % 8;
    if (group == 0) values[i] = 0;
    if (group == 1) values[i] = -0.25f;
    if (group == 2) values[i] = std::fabs(values[i]) + 1;
    if (group == 3) values[i] = -std::fabs(values[i]);
    if (group == 4) values[i] = i % 2 == 0 ? kMostEncoded : -kMostEncoded;
  }
  for (size_t i = 256 * 32; i < 256 * 48; ++i) {
    const size_t at = i % 32;
    const float halves = at == 0 ? -127 : at == 1 ? 127 : static_cast<float>(at) - 15.5f;
    values[i] = i / 256 % 2 == 0 ? halves : std::nextafter(halves, 0.0f);
  }
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  EXPECT_GE(targets.size(), 2u) << "nothing to compare";
  for (const FormatTraits& format : kFormats) {
    if (!can_encode(format.format)) continue;
    std::vector<std::byte> expected;
    for (const int64_t target : targets) {
      hwy::SetSupportedTargetsForTest(target);
      // A target that emulates vectors takes 25 times as long.
      const bool emulates = (target & (HWY_SCALAR | HWY_EMU128)) != 0;
      const auto count = static_cast<int64_t>(values.size() / (emulates ? 16 : 1));
      // Nor do they depend on what stood there.
      std::vector<std::byte> blocks(*stored_bytes(format.format, std::array{count}),
                                    std::byte{expected.empty() ? uint8_t{0} : uint8_t{0xFF}});
      encode(format.format, values.data(), count, blocks.data());
      if (expected.empty()) expected = blocks;
      EXPECT_TRUE(std::equal(blocks.begin(), blocks.end(), expected.begin()))
          << format.name << ": " << hwy::TargetName(target) << " and "
          << hwy::TargetName(targets.front());
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace
}  // namespace assay::engine
