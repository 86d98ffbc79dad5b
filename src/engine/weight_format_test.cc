// Formats against blocks that the test packs by their layout, value by value.
#include "engine/weight_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

struct Case {
  std::vector<std::byte> block;
  std::vector<double> values;
};

class Packer {
 public:
  Packer(WeightFormat format, Random& random) : random_(random) {
    made_.block.resize(traits(format).block_bytes);
    made_.values.resize(static_cast<size_t>(traits(format).block_values));
  }

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_.below(bound)); }
  // A random f16 at this byte.
  double put_half(size_t at) {
    const uint16_t bits = f32_to_f16(static_cast<float>(random_.uniform() * 2 - 1));
    std::memcpy(&made_.block[at], &bits, 2);
    return f16_to_f32(bits);
  }
  // `value` or-ed in from this bit of this byte.
  void put(size_t at, uint32_t value, uint32_t bit = 0) {
    made_.block[at] |= static_cast<std::byte>(value << bit);
  }
  void expect(size_t i, double value) { made_.values[i] = value; }
  Case take() { return std::move(made_); }

 private:
  Random& random_;
  Case made_;
};

// Blocks of 32: `bits` of each value, a minimum or a middle that counts as zero.
Case small_block(WeightFormat format, uint32_t bits, bool has_minimum, Random& random) {
  Packer p(format, random);
  const double d = p.put_half(0), m = has_minimum ? p.put_half(2) : 0;
  const size_t fifth = has_minimum ? 4 : 2, low = fifth + (bits == 5 ? 4 : 0);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t q = p.below(1u << bits);
    p.put(low + i % 16, q & 15, i < 16 ? 0 : 4);
    if (bits == 5) p.put(fifth + i / 8, q >> 4, i % 8);
    p.expect(i, has_minimum ? q * d + m : (q - double(1u << (bits - 1))) * d);
  }
  return p.take();
}

Case q8_block(Random& random) {
  Packer p(WeightFormat::kQ8_0, random);
  const double d = p.put_half(0);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t byte = p.below(256);
    p.put(2 + i, byte);
    p.expect(i, (byte < 128 ? double(byte) : double(byte) - 256) * d);
  }
  return p.take();
}

Case uneven_block(Random& random) {
  Packer p(WeightFormat::kIQ4_NL, random);
  const double d = p.put_half(0);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t q = p.below(16);
    p.put(2 + i % 16, q, i < 16 ? 0 : 4);
    p.expect(i, kUnevenSteps[q] * d);
  }
  return p.take();
}

Case k_block(WeightFormat format, Random& random) {
  Packer p(format, random);
  const double d = p.put_half(0), d_min = p.put_half(2);
  const bool five = format == WeightFormat::kQ5_K;
  for (uint32_t group = 0; group < 8; ++group) {
    const uint32_t scale = p.below(64), minimum = p.below(64);
    if (group < 4) {
      p.put(4 + group, scale);
      p.put(8 + group, minimum);
    } else {
      p.put(8 + group, scale & 15);
      p.put(8 + group, minimum & 15, 4);
      p.put(group, scale >> 4, 6);
      p.put(4 + group, minimum >> 4, 6);
    }
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t q = p.below(five ? 32 : 16);
      p.put((five ? 48 : 16) + group / 2 * 32 + i, q & 15, group % 2 * 4);
      if (five) p.put(16 + i, q >> 4, group);
      p.expect(group * 32 + i, d * scale * q - d_min * minimum);
    }
  }
  return p.take();
}

Case q6_block(Random& random) {
  Packer p(WeightFormat::kQ6_K, random);
  const double d = p.put_half(208);
  std::vector<double> scales;
  for (size_t i = 0; i < 16; ++i) {
    const uint32_t byte = p.below(256);
    p.put(192 + i, byte);
    scales.push_back(byte < 128 ? double(byte) : double(byte) - 256);
  }
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 128; ++i) {
      const uint32_t q = p.below(64);
      p.put(half * 64 + i % 64, q & 15, i < 64 ? 0 : 4);
      p.put(128 + half * 32 + i % 32, q >> 4, static_cast<uint32_t>(i / 32 * 2));
      p.expect(half * 128 + i, d * scales[half * 8 + i / 16] * (q - 32.0));
    }
  }
  return p.take();
}

Case int4_block(WeightFormat format, Random& random) {
  Packer p(format, random);
  // A scale of bf16, small as those of dead channels are, of fp16's least, or a usual one.
  const double scale = random.below(3) == 0   ? double{bf16_to_f32(0x2b8c)}
                       : random.below(2) == 0 ? 0x1p-24
                                              : -f16_to_f32(f32_to_f16(0.0123f));
  const uint32_t zero = p.below(17);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(scale));
  EXPECT_EQ(bits & 0xff, 0u);
  EXPECT_EQ(int4_word(static_cast<float>(scale), static_cast<uint8_t>(zero)), bits | zero);
  for (size_t i = 0; i < 4; ++i) p.put(i, (bits | zero) >> 8 * i & 0xff);
  for (size_t i = 0; i < static_cast<size_t>(traits(format).block_values); ++i) {
    const uint32_t q = p.below(16);
    p.put(4 + i / 2, q, i % 2 == 0 ? 0 : 4);
    p.expect(i, (double(q) - zero) * scale);
  }
  return p.take();
}

Case fp8_block(WeightFormat format, Random& random) {
  Packer p(format, random);
  const float scale = static_cast<float>(random.uniform());
  const auto bits = std::bit_cast<uint32_t>(scale);
  for (size_t i = 0; i < 4; ++i) p.put(i, bits >> 8 * i & 0xff);
  for (size_t i = 0; i < static_cast<size_t>(traits(format).block_values); ++i) {
    const uint32_t sign = p.below(2), exponent = p.below(16);
    const uint32_t mantissa = p.below(exponent == 15 ? 7 : 8);
    p.put(4 + i, sign << 7 | exponent << 3 | mantissa);
    const double size = exponent == 0 ? mantissa / 8.0 * 0x1p-6
                                      : (1 + mantissa / 8.0) * std::pow(2.0, exponent - 7.0);
    p.expect(i, (sign == 1 ? -size : size) * double{scale});
  }
  return p.take();
}

Case element(WeightFormat format, Random& random) {
  Packer p(format, random);
  const auto value = static_cast<float>(random.uniform());
  Case made = p.take();
  const TensorView view(reinterpret_cast<const std::byte*>(&value), DType::kF32, Shape{1});
  convert(view, traits(format).element, made.block.data());
  made.values[0] = format == WeightFormat::kF32   ? value
                   : format == WeightFormat::kF16 ? f16_to_f32(f32_to_f16(value))
                                                  : bf16_to_f32(f32_to_bf16(value));
  return made;
}

Case random_block(WeightFormat format, Random& random) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return element(format, random);
    case WeightFormat::kQ8_0:
      return q8_block(random);
    case WeightFormat::kQ4_0:
      return small_block(format, 4, false, random);
    case WeightFormat::kQ4_1:
      return small_block(format, 4, true, random);
    case WeightFormat::kQ5_0:
      return small_block(format, 5, false, random);
    case WeightFormat::kQ5_1:
      return small_block(format, 5, true, random);
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return k_block(format, random);
    case WeightFormat::kQ6_K:
      return q6_block(random);
    case WeightFormat::kIQ4_NL:
      return uneven_block(random);
    case WeightFormat::kInt4_G32:
    case WeightFormat::kInt4_G64:
    case WeightFormat::kInt4_G128:
      return int4_block(format, random);
    case WeightFormat::kFp8_G32:
    case WeightFormat::kFp8_G128:
      return fp8_block(format, random);
  }
  return {};
}

TEST(WeightFormat, DecodesWhatItsLayoutSays) {
  Random random(3);
  for (const FormatTraits& format : kFormats) {
    SCOPED_TRACE(format.name);
    // Several blocks behind one another, at an odd address.
    std::vector<std::byte> bytes(1);
    std::vector<double> expected;
    for (int block = 0; block < 20; ++block) {
      const Case made = random_block(format.format, random);
      bytes.insert(bytes.end(), made.block.begin(), made.block.end());
      expected.insert(expected.end(), made.values.begin(), made.values.end());
    }
    std::vector<float> found(expected.size());
    decode(format.format, bytes.data() + 1, static_cast<int64_t>(found.size()), found.data());
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 3e-7 * largest) << i;
    }
  }
}

TEST(WeightFormat, IsFoundByItsNameAndItsTypeInFiles) {
  for (const FormatTraits& format : kFormats) {
    EXPECT_EQ(parse_weight_format(format.name), format.format);
    const auto found = weight_format_of_gguf(format.gguf_type);
    EXPECT_EQ(found, format.gguf_type == kNoGgufType ? std::nullopt : std::optional(format.format));
  }
  EXPECT_EQ(parse_weight_format("q3_k"), std::nullopt);
  EXPECT_EQ(weight_format_of_gguf(9), std::nullopt);  // Q8_1 is no format of weights
  EXPECT_EQ(weight_format_of_gguf(31), std::nullopt);
  EXPECT_DOUBLE_EQ(traits(WeightFormat::kQ4_K).bits_a_weight(), 4.5);
}

TEST(WeightFormat, OfAGroupIsTheLargestBlockThatDividesIt) {
  EXPECT_EQ(int4_format(128), WeightFormat::kInt4_G128);
  EXPECT_EQ(int4_format(4096), WeightFormat::kInt4_G128);
  EXPECT_EQ(int4_format(576), WeightFormat::kInt4_G64);
  EXPECT_EQ(int4_format(96), WeightFormat::kInt4_G32);
  EXPECT_EQ(int4_format(16), std::nullopt);
  EXPECT_EQ(fp8_format(576), WeightFormat::kFp8_G32);
  EXPECT_EQ(fp8_format(896), WeightFormat::kFp8_G128);
  EXPECT_EQ(fp8_format(40), std::nullopt);
}

TEST(WeightFormat, AnInt4ScaleIsRoundedToTheNearestThatFits) {
  for (const float scale : {0.1f, 1.0f / 3, -1e-9f, 3e38f, 0.0f}) {
    const auto kept = std::bit_cast<float>(int4_word(scale, 7) & 0xffffff00u);
    EXPECT_LE(std::abs(kept - scale), std::abs(scale) * 0x1p-16f);
    EXPECT_EQ(int4_word(scale, 7) & 0xff, 7u);
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(std::bit_cast<float>(int4_word(-kInfinite, 16) & 0xffffff00u), -kInfinite);
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(int4_word(nan, 3) & 0xffffff00u)));
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7f)) && std::isnan(e4m3_to_f32(0xff)));
  EXPECT_EQ(e4m3_to_f32(0x7e), 448);
}

TEST(WeightFormat, ARowInAnotherOrderIsPutBack) {
  Random random(4);
  const std::vector<std::byte> bytes = [&] {
    std::vector<std::byte> made;
    for (int i = 0; i < 4; ++i) {
      const Case block = random_block(WeightFormat::kInt4_G32, random);
      made.insert(made.end(), block.block.begin(), block.block.end());
    }
    return made;
  }();
  TensorView view(bytes.data(), WeightFormat::kInt4_G32, Shape{2, 64});
  std::vector<float> stored(64), found(64);
  decode_row(view, 1, stored.data());
  std::vector<int32_t> order(64);
  for (size_t i = 0; i < 64; ++i) order[i] = static_cast<int32_t>(i * 27 % 64);
  view.input_order = order.data();
  decode_row(view, 1, found.data());
  for (size_t i = 0; i < 64; ++i) ASSERT_EQ(found[i * 27 % 64], stored[i]) << i;
}

TEST(WeightFormat, BytesOfAShape) {
  const auto bytes = [](WeightFormat format, std::vector<int64_t> dims) {
    return stored_bytes(format, dims);
  };
  EXPECT_EQ(bytes(WeightFormat::kBF16, {3, 5}), 30u);
  EXPECT_EQ(bytes(WeightFormat::kF32, {}), 4u);
  EXPECT_EQ(bytes(WeightFormat::kQ8_0, {3, 64}), 3u * 2 * 34);
  EXPECT_EQ(bytes(WeightFormat::kQ6_K, {2, 512}), 2u * 2 * 210);
  EXPECT_EQ(bytes(WeightFormat::kQ8_0, {64, 3}), std::nullopt);  // a row is no whole blocks
  EXPECT_EQ(bytes(WeightFormat::kQ4_K, {2, 32}), std::nullopt);
  EXPECT_EQ(bytes(WeightFormat::kF32, {-1, 2}), std::nullopt);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(bytes(WeightFormat::kF32, {kMost / 4 + 1}), std::nullopt);
  EXPECT_EQ(bytes(WeightFormat::kF16, {kMost / 2, 3}), std::nullopt);
}

TEST(WeightFormat, ConvertsBlocksByWayOfFloats) {
  Random random(5);
  std::vector<std::byte> bytes;
  std::vector<float> expected;
  for (int block = 0; block < 6; ++block) {
    const Case made = random_block(WeightFormat::kQ5_1, random);
    bytes.insert(bytes.end(), made.block.begin(), made.block.end());
  }
  const TensorView view(bytes.data(), WeightFormat::kQ5_1, Shape{3, 64});
  EXPECT_EQ(view.size_bytes(), bytes.size());
  std::vector<float> row(64);
  for (int64_t i = 0; i < 3; ++i) {
    decode_row(view, i, row.data());
    expected.insert(expected.end(), row.begin(), row.end());
  }
  std::vector<uint16_t> found(expected.size());
  convert(view, DType::kBF16, reinterpret_cast<std::byte*>(found.data()));
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], f32_to_bf16(expected[i])) << i;
}

}  // namespace
}  // namespace assay::engine
