// Whole products with weights in blocks against the scalar decoder, for any number of threads, rows
// and outputs, by integers and by bf16.
#include "engine/ops/cpu/block_linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/ops/cpu/block_product.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/random_blocks.h"

namespace assay::engine {
namespace {

struct Packed {
  std::vector<std::byte> blocks;
  std::vector<float> values;  // [outputs, inputs]
  HugeMemory tiles;
  cpu::BlockWeight weight;
};

Packed packed_weight(Random& random, WeightFormat format, int64_t inputs, int64_t outputs) {
  constexpr int64_t kTile = Packing::kPanel;
  Packed result;
  result.blocks = random_blocks(random, format, Shape{outputs, inputs});
  result.values.resize(static_cast<size_t>(outputs * inputs));
  decode(format, result.blocks.data(), outputs * inputs, result.values.data());
  const TensorView view(result.blocks.data(), format, Shape{outputs, inputs});
  const int64_t tiles = (outputs + kTile - 1) / kTile;
  const size_t tile_bytes = cpu::block_tile_bytes(format, inputs);
  result.tiles = std::move(*HugeMemory::allocate(static_cast<size_t>(tiles) * tile_bytes));
  for (int64_t t = 0; t < tiles; ++t) {
    std::array<const std::byte*, kTile> rows = {};
    for (int64_t c = 0; c < std::min(kTile, outputs - t * kTile); ++c) {
      rows[static_cast<size_t>(c)] = view.row(t * kTile + c);
    }
    cpu::pack_block_tile(format, rows, inputs,
                         result.tiles.data() + static_cast<size_t>(t) * tile_bytes);
  }
  result.weight = {
      .format = format, .inputs = inputs, .outputs = outputs, .tiles = result.tiles.data()};
  return result;
}

// Few rows have x rounded to 1/65024 of the largest in a block, more have it and the weights
// rounded to bf16: bounds of 0.01 % and 1 % of the sum of all sizes are far from both, and from
// what a wrong tile, row or bias would give.
void expect_product(ThreadPool& pool, Random& random, const Packed& packed, int64_t rows,
                    bool has_bias) {
  const auto [format, inputs, outputs, tiles, order] = packed.weight;
  SCOPED_TRACE(fmt::format("{} threads, {} rows, {} x {} {}", pool.size(), rows, inputs, outputs,
                           traits(format).name));
  std::vector<float> x(static_cast<size_t>(rows * inputs));
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  std::vector<float> offsets(static_cast<size_t>(outputs));
  for (float& value : offsets) value = static_cast<float>(random.uniform() * 100);
  const TensorView bias(reinterpret_cast<const std::byte*>(offsets.data()), DType::kF32,
                        Shape{outputs});
  constexpr float kUntouched = -77;
  std::vector<float> out(static_cast<size_t>(rows * outputs) + 64, kUntouched);
  const double bound = rows <= cpu::kMostIntegerRows ? 1e-4 : 0.01;
  cpu::BlockLinear linear(pool);
  ASSERT_TRUE(linear.run(x.data(), packed.weight, has_bias ? &bias : nullptr, out.data(), rows));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < outputs; ++o) {
      double expected = has_bias ? offsets[static_cast<size_t>(o)] : 0, size = 0;
      for (int64_t i = 0; i < inputs; ++i) {
        const int64_t input = order == nullptr ? i : order[i];
        const double product = double{x[static_cast<size_t>(r * inputs + input)]} *
                               packed.values[static_cast<size_t>(o * inputs + i)];
        expected += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(out[static_cast<size_t>(r * outputs + o)], expected, bound * size + 1e-4)
          << "row " << r << ", output " << o;
    }
  }
  for (size_t i = static_cast<size_t>(rows * outputs); i < out.size(); ++i) {
    ASSERT_EQ(out[i], kUntouched);
  }
}

TEST(BlockLinear, EqualsTheDecodedWeightsProduct) {
  for (const size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const WeightFormat format :
         {WeightFormat::kQ8_0, WeightFormat::kQ4_0, WeightFormat::kQ4_K, WeightFormat::kQ6_K,
          WeightFormat::kInt4_G128, WeightFormat::kFp8_G32}) {
      Random random(threads);
      for (const int64_t outputs : {1, 64, 100, 192}) {
        const Packed packed = packed_weight(random, format, 512, outputs);
        for (const int64_t rows : {1, 3, 8, 9, 40}) {
          expect_product(pool, random, packed, rows, rows % 2 == 1);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// As GPTQ's act-order has them: x is read in the order of the stored inputs.
TEST(BlockLinear, ReadsInputsInTheWeightsOrder) {
  ThreadPool pool(2);
  Random random(6);
  Packed packed = packed_weight(random, WeightFormat::kInt4_G32, 672, 70);
  std::vector<int32_t> order(672);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i * 275 % 672);
  packed.weight.input_order = order.data();
  for (const int64_t rows : {1, 3, 40}) {
    expect_product(pool, random, packed, rows, false);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BlockInputs, AreIntegersForFewRows) {
  EXPECT_TRUE(cpu::BlockInputs(1, 64).in_integers());
  EXPECT_TRUE(cpu::BlockInputs(cpu::kMostIntegerRows, 64).in_integers());
  EXPECT_FALSE(cpu::BlockInputs(cpu::kMostIntegerRows + 1, 64).in_integers());
  EXPECT_EQ(cpu::BlockInputs(1, 64).row_bytes(), 2 * 80);
}

}  // namespace
}  // namespace assay::engine
