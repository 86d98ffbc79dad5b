// Products with packed blocks against the scalar decoder, on every target, over random blocks and
// extreme ones.
#include "engine/ops/cpu/quantized_product.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/memory/huge_memory.h"
#include "engine/model/convert.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/random_blocks.h"

namespace assay::engine {
namespace {

constexpr int64_t kPanel = Packing::kPanel;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<WeightFormat> block_formats() {
  std::vector<WeightFormat> formats;
  for (const FormatTraits& t : kFormats) {
    if (t.in_blocks()) formats.push_back(t.format);
  }
  return formats;
}

// Random bytes, with scales of usual sizes, some of them 0 or negative.
std::vector<std::byte> blocks_of_bytes(Random& random, WeightFormat format, int64_t values) {
  const FormatTraits& t = traits(format);
  std::vector<std::byte> bytes(static_cast<size_t>(values / t.block_values) * t.block_bytes);
  put_random_codes(random, format, bytes);
  for (size_t at = 0; at < bytes.size(); at += t.block_bytes) {
    const auto scale = [&] {
      // An e4m3 is up to 448.
      const float largest = is_fp8(format) ? 1.0f / 256 : 1.0f / 16;
      return random.below(8) == 0 ? 0 : static_cast<float>(random.uniform() - 0.4) * largest;
    };
    const float first = scale();
    put_scale(format, &bytes[at], first, scale());
  }
  return bytes;
}

// A weight of some outputs, packed, and as the decoder has it.
struct Weight {
  WeightFormat format;
  int64_t inputs, outputs, tiles;
  std::vector<std::byte> blocks;
  std::vector<float> values;  // [outputs, inputs]
  HugeMemory packed;

  Weight(WeightFormat of, int64_t in, int64_t out, std::vector<std::byte> bytes)
      : format(of),
        inputs(in),
        outputs(out),
        tiles((out + kPanel - 1) / kPanel),
        blocks(std::move(bytes)),
        values(static_cast<size_t>(out * in)),
        packed(*HugeMemory::allocate(static_cast<size_t>(tiles) * cpu::block_tile_bytes(of, in))) {
    decode(format, blocks.data(), outputs * inputs, values.data());
    const size_t row_bytes = blocks.size() / static_cast<size_t>(outputs);
    for (int64_t t = 0; t < tiles; ++t) {
      std::array<const std::byte*, kPanel> rows = {};
      for (int64_t c = 0; c < std::min(kPanel, outputs - t * kPanel); ++c) {
        rows[static_cast<size_t>(c)] =
            blocks.data() + static_cast<size_t>(t * kPanel + c) * row_bytes;
      }
      cpu::pack_block_tile(format, rows, inputs,
                           packed.data() + static_cast<size_t>(t) * cpu::block_tile_bytes(of, in));
    }
  }
  const float* row(int64_t output) const { return values.data() + output * inputs; }
};

Weight random_weight(Random& random, WeightFormat format, int64_t inputs, int64_t outputs) {
  return {format, inputs, outputs, blocks_of_bytes(random, format, inputs * outputs)};
}

std::vector<float> random_rows(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

std::vector<cpu::QuantizedBlock> quantized(const std::vector<float>& x) {
  std::vector<cpu::QuantizedBlock> blocks(x.size() / 32);
  cpu::quantize(x.data(), static_cast<int64_t>(x.size()), blocks.data());
  return blocks;
}

// [rows, tiles * 64 + 3]; the last three of each row stay untouched.
std::vector<float> multiplied(const Weight& weight, const std::vector<cpu::QuantizedBlock>& x,
                              int64_t rows) {
  constexpr float kUntouched = -77;
  const int64_t pitch = weight.tiles * kPanel + 3;
  std::vector<float> out(static_cast<size_t>(rows * pitch), kUntouched);
  cpu::quantized_product({.x = x.data(),
                          .rows = rows,
                          .inputs = weight.inputs,
                          .format = weight.format,
                          .tiles = weight.packed.data(),
                          .tile_count = weight.tiles,
                          .out = out.data(),
                          .out_pitch = pitch});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = pitch - 3; c < pitch; ++c) {
      EXPECT_EQ(out[static_cast<size_t>(r * pitch + c)], kUntouched);
    }
    for (int64_t c = weight.outputs; c < pitch - 3; ++c) {
      const float found = out[static_cast<size_t>(r * pitch + c)];
      EXPECT_TRUE(found == 0 || std::isnan(x[0].scale)) << "padding";
    }
  }
  return out;
}

// Half a step of x for each weight, and fp32's own rounding.
void expect_products(const Weight& weight, const std::vector<float>& x, int64_t rows) {
  const auto blocks = quantized(x);
  const auto out = multiplied(weight, blocks, rows);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < weight.outputs; ++o) {
      double exact = 0, magnitude = 0, steps = 0;
      for (int64_t i = 0; i < weight.inputs; ++i) {
        const auto at = static_cast<size_t>(r * weight.inputs + i);
        const double w = weight.row(o)[i], scale = blocks[at / 32].scale;
        exact += w * x[at];
        // The integers sum values with the format's zero, which are larger than the weight.
        magnitude += std::fabs(w) * (std::fabs(x[at]) + scale * cpu::QuantizedBlock::kLargest / 8);
        steps += 0.5 * scale * std::fabs(w);
      }
      const double found = out[static_cast<size_t>(r * (weight.tiles * kPanel + 3) + o)];
      ASSERT_NEAR(found, exact, steps * 1.01 + 5e-6 * magnitude + 1e-9)
          << "row " << r << ", output " << o;
    }
  }
}

// Runs on every target that this machine has.
class QuantizedProduct : public testing::Test {
 protected:
  template <typename Body>
  void on_every_target(const Body& body) {
    for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
      const int64_t target = rest & -rest;
      hwy::SetSupportedTargetsForTest(target);
      SCOPED_TRACE(hwy::TargetName(target));
      body();
      if (HasFatalFailure()) break;
    }
  }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_F(QuantizedProduct, IsTheScalarDecodersWithinTheRoundingOfX) {
  on_every_target([] {
    for (const WeightFormat format : block_formats()) {
      SCOPED_TRACE(std::string(traits(format).name));
      Random random(7);
      const int64_t block = traits(format).block_values;
      for (const auto& [rows, blocks, outputs] : {std::array<int64_t, 3>{1, 1, 1},
                                                  {1, 9, 64},
                                                  {2, 2, 65},
                                                  {3, 3, 17},
                                                  {4, 1, 130},
                                                  {5, 2, 64},
                                                  {8, 1, 63},
                                                  {13, 5, 40}}) {
        SCOPED_TRACE(fmt::format("{} x {} blocks x {}", rows, blocks, outputs));
        const Weight weight = random_weight(random, format, blocks * block, outputs);
        expect_products(weight, random_rows(random, rows * weight.inputs), rows);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Every value of a weight by itself: a lost bit would show.
TEST_F(QuantizedProduct, KeepsEveryBitOfEveryWeight) {
  for (const WeightFormat format : block_formats()) {
    SCOPED_TRACE(std::string(traits(format).name));
    Random random(11);
    const Weight weight = random_weight(random, format, 2 * traits(format).block_values, 70);
    for (int64_t i = 0; i < weight.inputs; ++i) {
      std::vector<float> x(static_cast<size_t>(weight.inputs));
      x[static_cast<size_t>(i)] = 128;  // the product is the value times that
      const auto out = multiplied(weight, quantized(x), 1);
      for (int64_t o = 0; o < weight.outputs; ++o) {
        const double expected = 128 * double{weight.row(o)[i]};
        // The sum of a format's zero or minimum with the value may cancel.
        ASSERT_NEAR(out[static_cast<size_t>(o)], expected, 5e-4 + 1e-6 * std::fabs(expected))
            << i << ", " << o;
      }
    }
  }
}

// All bits of a block set: the least signed value, -128, and the largest of the others.
TEST_F(QuantizedProduct, TakesTheExtremesOfEveryFormat) {
  on_every_target([] {
    for (const WeightFormat format : block_formats()) {
      SCOPED_TRACE(std::string(traits(format).name));
      const FormatTraits& t = traits(format);
      for (const auto fill : {std::byte{0x00}, std::byte{0x80}, std::byte{0x7f}, std::byte{0xff}}) {
        const bool is_nan = is_fp8(format) && (fill & std::byte{0x7f}) == std::byte{0x7f};
        for (const float d : {0.0f, 1.0f, -2.0f}) {
          std::vector<std::byte> bytes(t.block_bytes * 16, is_nan ? fill ^ std::byte{1} : fill);
          for (size_t at = 0; at < bytes.size(); at += t.block_bytes) {
            put_scale(format, &bytes[at], d, d / 2);
          }
          const Weight weight(format, t.block_values, 16, bytes);
          for (const float sign : {1.0f, -1.0f}) {
            expect_products(
                weight, std::vector<float>(static_cast<size_t>(t.block_values), 3.5f * sign), 1);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TEST_F(QuantizedProduct, CarriesScalesThatAreNoNumbers) {
  on_every_target([] {
    for (const WeightFormat format : block_formats()) {
      SCOPED_TRACE(std::string(traits(format).name));
      const FormatTraits& t = traits(format);
      for (const uint16_t bits : {0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xffff}) {
        Random random(3);
        std::vector<std::byte> bytes = blocks_of_bytes(random, format, 2 * t.block_values);
        put_scale(format, bytes.data(), f16_to_f32(bits));  // of output 0 alone
        const Weight weight(format, t.block_values, 2, bytes);
        const auto x = random_rows(random, t.block_values);
        const auto out = multiplied(weight, quantized(x), 1);
        EXPECT_FALSE(std::isfinite(out[0]));
        EXPECT_TRUE(std::isfinite(out[1]));
        auto panel = HugeMemory::allocate(static_cast<size_t>(t.block_values * kPanel) * 2);
        auto* const pairs = reinterpret_cast<uint16_t*>(panel->data());
        cpu::tile_to_bf16(format, weight.packed.data(), weight.inputs, pairs);
        bool all_finite = true;
        for (int64_t i = 0; i < weight.inputs; ++i) {
          all_finite =
              all_finite && std::isfinite(bf16_to_f32(pairs[Packing::element(DType::kBF16, i, 0)]));
          EXPECT_TRUE(std::isfinite(bf16_to_f32(pairs[Packing::element(DType::kBF16, i, 1)])));
        }
        EXPECT_FALSE(all_finite) << bits;
      }
    }
  });
}

// A NaN of e4m3, which kernels would read as 480.
TEST_F(QuantizedProduct, CarriesValuesThatAreNoNumbers) {
  on_every_target([] {
    for (const WeightFormat format : {WeightFormat::kFp8_G32, WeightFormat::kFp8_G128}) {
      const FormatTraits& t = traits(format);
      for (const size_t at : {size_t{4}, t.block_bytes - 1}) {
        for (const std::byte nan : {std::byte{0x7f}, std::byte{0xff}}) {
          Random random(3);
          std::vector<std::byte> bytes = blocks_of_bytes(random, format, 2 * t.block_values);
          bytes[at] = nan;  // of output 0 alone
          const Weight weight(format, t.block_values, 2, bytes);
          const auto out = multiplied(weight, quantized(random_rows(random, t.block_values)), 1);
          EXPECT_TRUE(std::isnan(out[0]));
          EXPECT_TRUE(std::isfinite(out[1]));
        }
      }
    }
  });
}

TEST_F(QuantizedProduct, APanelHasEachValueToTheNearest) {
  on_every_target([] {
    for (const WeightFormat format : block_formats()) {
      SCOPED_TRACE(std::string(traits(format).name));
      Random random(5);
      const Weight weight = random_weight(random, format, 3 * traits(format).block_values, 64);
      auto panel = HugeMemory::allocate(static_cast<size_t>(weight.inputs * kPanel) * 2);
      auto* const pairs = reinterpret_cast<uint16_t*>(panel->data());
      cpu::tile_to_bf16(format, weight.packed.data(), weight.inputs, pairs);
      for (int64_t o = 0; o < weight.outputs; ++o) {
        for (int64_t i = 0; i < weight.inputs; ++i) {
          const double expected = weight.row(o)[i];
          const float found = bf16_to_f32(pairs[Packing::element(DType::kBF16, i, o)]);
          // Half a unit of bf16's last place, and fp32's rounding of a sum that may cancel.
          ASSERT_NEAR(found, expected, std::ldexp(std::fabs(expected), -8) + 2e-6)
              << i << ", " << o;
        }
      }
    }
  });
}

// Output i of the weight is x[i] as it was rounded.
Weight identity(int64_t inputs) {
  const FormatTraits& t = traits(WeightFormat::kQ8_0);
  std::vector<std::byte> bytes(static_cast<size_t>(inputs * inputs / t.block_values) *
                               t.block_bytes);
  for (size_t i = 0; i < static_cast<size_t>(inputs); ++i) {
    const size_t block = (i * static_cast<size_t>(inputs) + i) / 32 * t.block_bytes;
    put_scale(WeightFormat::kQ8_0, &bytes[block], 1);
    bytes[block + 2 + i % 32] = std::byte{1};
  }
  return {WeightFormat::kQ8_0, inputs, inputs, bytes};
}

TEST_F(QuantizedProduct, RoundsXToTheNearestStep) {
  on_every_target([] {
    Random random(2);
    const Weight same = identity(96);
    for (const float size : {1.0f, 1e-30f, 3e30f}) {
      std::vector<float> x = random_rows(random, 96);
      for (float& value : x) value *= size;
      for (size_t i = 32; i < 64; ++i) x[i] = 0;
      const auto blocks = quantized(x);
      const auto rounded = multiplied(same, blocks, 1);
      for (size_t b = 0; b < blocks.size(); ++b) {
        const double step = blocks[b].scale;
        double largest = 0;
        std::array<int32_t, 2> sums = {};
        for (size_t i = 0; i < 32; ++i) {
          const double value = x[32 * b + i], found = rounded[32 * b + i];
          ASSERT_NEAR(found, value, step / 2 * 1.01) << b << ", " << i;
          largest = std::max(largest, std::fabs(value));
          if (step > 0) sums[i / 16] += static_cast<int32_t>(std::lround(found / step));
        }
        EXPECT_NEAR(step * cpu::QuantizedBlock::kLargest, largest, 1e-6 * largest);
        EXPECT_EQ(blocks[b].half_sums, sums);
        EXPECT_NEAR(blocks[b].sum, step * (sums[0] + sums[1]),
                    1e-6 * std::fabs(double{blocks[b].sum}));
      }
    }
  });
}

TEST_F(QuantizedProduct, AnXThatIsNoNumberMakesAllOfItsRowNoNumbers) {
  on_every_target([] {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (const size_t at : {0, 15, 31}) {
        Random random(9);
        const Weight weight = random_weight(random, WeightFormat::kQ4_1, 64, 5);
        std::vector<float> x = random_rows(random, 128);
        x[at] = bad;
        const auto out = multiplied(weight, quantized(x), 2);
        for (size_t o = 0; o < 5; ++o) {
          EXPECT_TRUE(std::isnan(out[o])) << bad << " at " << at;
          EXPECT_FALSE(std::isnan(out[kPanel + 3 + o]));
        }
      }
    }
    std::vector<float> tiny(32, 1e-39f);
    EXPECT_EQ(quantized(tiny)[0].scale, 0);
    EXPECT_EQ(quantized(tiny)[0].words, decltype(cpu::QuantizedBlock::words)());
  });
}

}  // namespace
}  // namespace assay::engine
