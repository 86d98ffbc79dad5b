// Formats against blocks that the test packs by their layout, value by value.
#include "engine/weight_format.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    EXPECT_EQ(weight_format_of_gguf(format.gguf_type), format.format);
  }
  EXPECT_EQ(parse_weight_format("q3_k"), std::nullopt);
  EXPECT_EQ(weight_format_of_gguf(9), std::nullopt);  // Q8_1 is no format of weights
  EXPECT_EQ(weight_format_of_gguf(31), std::nullopt);
  EXPECT_DOUBLE_EQ(traits(WeightFormat::kQ4_K).bits_a_weight(), 4.5);
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
