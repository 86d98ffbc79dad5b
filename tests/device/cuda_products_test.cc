// Product kernels on a real GPU against sums in double: every weight format, odd and even numbers
// of inputs, few rows and many. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "cuda_product_kernels.h"
#include "engine/block_cells.h"
#include "engine/codegen/cuda/cuda_product_shape.h"

namespace assay::engine::test {
namespace {

// Two turns of a block with few inputs; three, of which the last block has one.
constexpr int64_t kManyOutputs = 5400, kUnevenOutputs = 10'688;
// More turns than a block of a row's columns in blocks asks for ahead.
constexpr int64_t kTurns = 40'000, kFewerTurns = 21'136;
constexpr int64_t kTileOutputs = 320;  // more than a tile's columns

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kF16}) {
    for (const int64_t inputs : {17, 64, 513, 896, 4864, 17000}) {
      for (const int64_t rows : {1, 3, 8}) cases.push_back({format, inputs, rows});
    }
  }
  cases.push_back({WeightFormat::kBF16, 64, 1, kManyOutputs});
  cases.push_back({WeightFormat::kBF16, 64, 1, kUnevenOutputs});
  for (const int64_t inputs : {1088, 2048}) {  // rings of more than one lap
    cases.push_back({WeightFormat::kBF16, inputs, 3, kManyOutputs});
  }
  for (const FormatTraits& t : kFormats) {
    if (!t.in_blocks()) continue;
    const int64_t small = t.block_values == 64 ? 128 : std::max<int64_t>(t.block_values, 96);
    for (const int64_t inputs : {small, 9 * small, int64_t{5120}}) {
      for (const int64_t rows : {1, 3, 8, 12, 19, 27}) cases.push_back({t.format, inputs, rows});
    }
  }
  for (const FormatTraits& t : kFormats) {  // tiles, with a last slot that isn't full
    if (!t.in_blocks() || block_parts(t.format).is_float) continue;
    const int64_t inputs = t.block_values == 32 ? 192 : t.block_values;
    for (const int64_t rows : {40, 150}) cases.push_back({t.format, inputs, rows, kTileOutputs});
    cases.push_back({t.format, 2560, 130, kTileOutputs});
    if (inputs == 256) cases.push_back({t.format, 1536, 140, 3 * kTileOutputs});
    // Blocks that have several tiles, whose last slots aren't full.
    if (t.block_values <= 64) cases.push_back({t.format, 448, 140, 3 * kTileOutputs});
  }
  cases.push_back({WeightFormat::kQ4_0, 96, 1, kTurns});
  cases.push_back({WeightFormat::kQ8_0, 1152, 1, kFewerTurns});
  cases.push_back({WeightFormat::kQ6_K, 3072, 1, kManyOutputs});
  for (const int64_t rows : {1, 8, 12, 19}) {
    cases.push_back({WeightFormat::kInt4_G64, 1152, rows, kOutputs, true});
  }
  return cases;
}

class CudaProducts : public CudaProductKernels, public testing::WithParamInterface<ProductCase> {};
TEST_P(CudaProducts, EqualSumsInDouble) {
  const auto [format, inputs, rows, outputs, ordered] = GetParam();
  const bool in_blocks = traits(format).in_blocks();
  const std::vector<int32_t> order = ordered ? some_order(inputs) : std::vector<int32_t>();
  const Graph graph = product_graph(inputs, outputs, format, ordered ? order.data() : nullptr);
  Specialization dims_known{.batch = rows, .q_len = 1, .kv_len = {}, .capacity = {}};
  if (GetParam().any_rows()) dims_known = {};
  auto kernel = lower(graph, graph.nodes.back(), dims_known, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  kernel->target = "sm_90a";  // as load() compiles
  if (rows > kCudaBlockRows) {
    auto& body = std::get<ProductKernel>(kernel->body);
    body.by_itself = true;
    ASSERT_EQ(cuda_product_shape(*kernel, body).form, CudaProductForm::kTiles);
  }
  void* module = nullptr;
  ASSERT_NO_FATAL_FAILURE(load(*kernel, module));

  Random random(static_cast<uint64_t>(inputs * 100 + rows));
  const auto& product = std::get<ProductKernel>(kernel->body);
  std::vector<float> x = random_values(random, rows * inputs);
  // Sums of 0 come from every block.
  if (rows > 1) std::fill_n(x.begin() + inputs, inputs, 0.0f);
  if (rows > kProductRows) {  // which may round them to 16 bits
    for (float& value : x) value = bf16_to_f32(f32_to_bf16(value));
  }
  std::vector<float> weights = random_values(random, outputs * inputs);
  const auto packed =
      in_blocks ? in_slots(random, format, outputs, inputs, product.packing, order, weights)
                : in_rows(weights, inputs, traits(format).element, product.packing);
  std::vector<float> out(static_cast<size_t>(rows * outputs), std::nanf(""));
  const DimValues dims{.batch = rows, .q_len = 1, .kv_len = rows};
  const int64_t sizes[] = {rows, 1, rows, rows};
  Arguments arguments{on_device(x.data(), x.size() * 4), on_device(packed.data(), packed.size()),
                      on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes),
                      workspace_of(*kernel, dims, rows)};
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (CudaLaunch of : cuda_launches(*kernel, dims, rows).run) {
      if (GetParam().few_blocks() && of.entry == "assay_run") of.blocks_x = 2 + repeat;
      ASSERT_NO_FATAL_FAILURE(launch(module, of, arguments));
    }
    const std::vector<float> before = out;
    ASSERT_EQ(driver_->download(out.data(), arguments.out, out.size() * 4), 0);
    EXPECT_TRUE(is_clean(*kernel, dims, rows, arguments.workspace)) << "repetition " << repeat;
    const bool is_equal = std::memcmp(before.data(), out.data(), out.size() * 4) == 0;
    // Blocks that share columns are added up in one order.
    EXPECT_TRUE(repeat == 0 || GetParam().few_blocks() || is_equal) << "repetition " << repeat;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < outputs; ++o) {
      double expected = 0, weight_squares = 0, x_squares = 0, largest = 0;
      for (int64_t i = 0; i < inputs; ++i) {
        const double weight{weights[static_cast<size_t>(o * inputs + i)]};
        const double input{x[static_cast<size_t>(r * inputs + i)]};
        expected += input * weight;
        weight_squares += weight * weight, x_squares += input * input;
        largest = std::max(largest, std::abs(weight));
      }
      // With weights in blocks x is rounded to whole units, 32512 of which are a cell's largest,
      // half a one: errors of a unit over the root of 12, of which five deviations are allowed.
      // With more rows weights have the 11 bits of fp16, as if each were the largest. A factor is
      // rounded once for all of a block's weights: errors add up as products do, of which four
      // deviations are allowed.
      constexpr double kUnit = 0.5 / 32512;
      // Tiles have the 8 bits of bf16: of values, of factors, which may be one for all inputs, and
      // of offsets.
      const double rounding = !in_blocks ? 0
                              : rows > kCudaBlockRows
                                  ? largest * std::sqrt(x_squares) / 128 + std::abs(expected) / 256
                              : rows > kProductRows ? largest * std::sqrt(x_squares) / 1024
                                                    : 5 * kUnit * std::sqrt(weight_squares / 12);
      ASSERT_NEAR(out[static_cast<size_t>(r * outputs + o)], expected,
                  rounding + 2e-6 * std::sqrt(static_cast<double>(inputs)))
          << r << ", " << o;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaProducts,
    testing::ValuesIn(assay::test::chosen(product_cases(), &name_of,
                                          {"fp32_17_inputs_3_rows",
                                           "fp32_64_inputs_3_rows",
                                           "fp32_896_inputs_8_rows",
                                           "fp32_4864_inputs_8_rows",
                                           "bf16_17_inputs_8_rows",
                                           "bf16_64_inputs_8_rows",
                                           "bf16_64_inputs_1_rows_5400_outputs",
                                           "bf16_64_inputs_1_rows_10688_outputs",
                                           "bf16_513_inputs_3_rows",
                                           "bf16_1088_inputs_3_rows_5400_outputs",
                                           "bf16_2048_inputs_3_rows_5400_outputs",
                                           "bf16_17000_inputs_1_rows",
                                           "fp16_17_inputs_8_rows",
                                           "fp16_64_inputs_3_rows",
                                           "fp16_896_inputs_1_rows",
                                           "fp16_4864_inputs_8_rows",
                                           "q8_0_864_inputs_8_rows",
                                           "q4_0_96_inputs_1_rows",
                                           "q4_1_96_inputs_19_rows",
                                           "q5_0_96_inputs_3_rows",
                                           "q5_1_96_inputs_12_rows",
                                           "q4_k_2304_inputs_3_rows",
                                           "q4_k_2304_inputs_19_rows",
                                           "q4_k_256_inputs_1_rows",
                                           "q5_k_256_inputs_8_rows",
                                           "q6_k_2304_inputs_1_rows",
                                           "q6_k_256_inputs_12_rows",
                                           "int4_g32_96_inputs_3_rows",
                                           "int4_g64_128_inputs_1_rows",
                                           "int4_g128_128_inputs_8_rows",
                                           "int4_g64_1152_inputs_1_rows_ordered",
                                           "int4_g64_1152_inputs_12_rows_ordered",
                                           "q4_k_2304_inputs_27_rows",
                                           "q8_0_96_inputs_27_rows",
                                           "fp8_g32_96_inputs_12_rows",
                                           "fp8_g32_96_inputs_3_rows",
                                           "fp8_g128_128_inputs_1_rows",
                                           "q4_0_96_inputs_1_rows_40000_outputs",
                                           "q8_0_1152_inputs_1_rows_21136_outputs",
                                           "iq4_nl_96_inputs_3_rows",
                                           "iq4_nl_192_inputs_40_rows_320_outputs",
                                           "q4_0_192_inputs_150_rows_320_outputs",
                                           "q4_1_192_inputs_40_rows_320_outputs",
                                           "q5_0_192_inputs_40_rows_320_outputs",
                                           "q5_1_192_inputs_40_rows_320_outputs",
                                           "q5_k_256_inputs_40_rows_320_outputs",
                                           "q4_k_2560_inputs_130_rows_320_outputs",
                                           "q6_k_256_inputs_40_rows_320_outputs",
                                           "q4_k_1536_inputs_140_rows_960_outputs",
                                           "q8_0_192_inputs_40_rows_320_outputs",
                                           "q4_0_448_inputs_140_rows_960_outputs",
                                           "int4_g128_128_inputs_40_rows_320_outputs",
                                           "int4_g64_64_inputs_40_rows_320_outputs"})),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine::test
