// Weights in blocks on a real GPU: as the library gets them, as a table of embeddings, and the
// scales that tiles hold. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "cuda_product_kernels.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"

namespace assay::engine::test {
namespace {

// Every format of blocks, with a last slot that isn't full where its blocks allow one.
std::vector<ProductCase> decoded_cases() {
  std::vector<ProductCase> cases;
  for (const FormatTraits& t : kFormats) {
    if (!t.in_blocks()) continue;
    cases.push_back({t.format, t.block_values == 32 ? 864 : t.block_values * 9, 19});
  }
  cases.push_back({WeightFormat::kInt4_G128, 1152, 19, kOutputs, true});
  return cases;
}

class CudaProductCases : public CudaProductKernels,
                         public testing::WithParamInterface<ProductCase> {};

// Tiles of the smallest and the largest scales that they hold, and rows of x that are large, not
// finite, or too large.
struct TileScales {
  WeightFormat format;
  float largest;  // docs/engine.md, "Tiles": just below the bound for the format's bits
};
class CudaTileScales : public CudaProductKernels, public testing::WithParamInterface<TileScales> {};
TEST_P(CudaTileScales, KeepTheirBitsAndRowsTheirs) {
  constexpr int64_t kInputs = 256, kRows = 40;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kBeyond = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity,
                                  0x1p113f};  // rows 1, 2 ...
  constexpr int64_t kLargeRow = 9;
  const WeightFormat format = GetParam().format;
  const Graph graph = product_graph(kInputs, kOutputs, format, nullptr);
  auto kernel =
      lower(graph, graph.nodes.back(), {.batch = kRows, .q_len = 1, .kv_len = {}, .capacity = {}},
            TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  kernel->target = "sm_90a";
  auto& product = std::get<ProductKernel>(kernel->body);
  product.by_itself = true;
  ASSERT_EQ(cuda_product_shape(*kernel, product).form, CudaProductForm::kTiles);
  void* module = nullptr;
  ASSERT_NO_FATAL_FAILURE(load(*kernel, module));

  Random random(7);
  std::vector<float> x = random_values(random, kRows * kInputs);
  for (float& value : x) value = bf16_to_f32(f32_to_bf16(value));
  for (int64_t i = 0; i < kInputs; ++i) x[static_cast<size_t>(kLargeRow * kInputs + i)] *= 0x1p90f;
  for (size_t r = 0; r < kBeyond.size(); ++r) x[(r + 1) * kInputs + 5 * r] = kBeyond[r];
  const DimValues dims{.batch = kRows, .q_len = 1, .kv_len = kRows};
  const int64_t sizes[] = {kRows, 1, kRows, kRows};
  // fp16's smallest scale; its largest one too where codes have a zero of their own.
  for (const float scale : {0x1p-24f, GetParam().largest}) {
    std::vector<float> weights(static_cast<size_t>(kOutputs * kInputs));
    const auto slots =
        in_slots(random, format, kOutputs, kInputs, product.packing, {}, weights, scale);
    std::vector<float> out(static_cast<size_t>(kRows * kOutputs));
    Arguments arguments{on_device(x.data(), x.size() * 4), on_device(slots.data(), slots.size()),
                        on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes),
                        workspace_of(*kernel, dims, kRows)};
    for (const CudaLaunch& of : cuda_launches(*kernel, dims, kRows).run) {
      ASSERT_NO_FATAL_FAILURE(launch(module, of, arguments));
    }
    ASSERT_EQ(driver_->download(out.data(), arguments.out, out.size() * 4), 0);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t o = 0; o < kOutputs; ++o) {
        const float found = out[static_cast<size_t>(r * kOutputs + o)];
        if (r >= 1 && r <= static_cast<int64_t>(kBeyond.size())) {
          ASSERT_FALSE(std::isfinite(found)) << r << ", " << o << ", scale " << scale;
          continue;
        }
        double expected = 0, squares = 0, largest = 0;
        for (int64_t i = 0; i < kInputs; ++i) {
          const double weight{weights[static_cast<size_t>(o * kInputs + i)]};
          const double input{x[static_cast<size_t>(r * kInputs + i)]};
          expected += input * weight;
          squares += input * input;
          largest = std::max(largest, std::abs(weight));
        }
        // As in EqualSumsInDouble.
        ASSERT_NEAR(found, expected, largest * std::sqrt(squares) / 128 + std::abs(expected) / 256)
            << r << ", " << o << ", scale " << scale;
      }
    }
  }
}

// Rows that one product's epilogue writes as the next one's tiles read them are those that a kernel
// between the two writes: both give the same bits.
class CudaTiledRows : public CudaProductKernels {};
TEST_F(CudaTiledRows, AreThoseOfAKernelBetweenTheProducts) {
  constexpr int64_t kInputs = 256, kMiddle = 320, kRows = 150;
  const DimValues dims{.batch = kRows, .q_len = 1, .kv_len = kRows};
  const int64_t sizes[] = {kRows, 1, kRows, kRows};
  Random random(11);
  const auto kernel_of = [](int64_t inputs, int64_t outputs, WeightFormat format) {
    const Graph graph = product_graph(inputs, outputs, format, nullptr);
    auto kernel =
        lower(graph, graph.nodes.back(), {.batch = kRows, .q_len = 1, .kv_len = {}, .capacity = {}},
              TileLayout::kRows);
    EXPECT_TRUE(kernel) << kernel.error().message;
    kernel->target = "sm_90a";
    std::get<ProductKernel>(kernel->body).by_itself = true;
    return *std::move(kernel);
  };
  Kernel first = kernel_of(kInputs, kMiddle, WeightFormat::kQ4_K);
  Kernel second = kernel_of(kMiddle, kOutputs, WeightFormat::kQ8_0);
  auto& writer = std::get<ProductKernel>(first.body);
  auto& reader = std::get<ProductKernel>(second.body);
  first.buffers[library_product(first, writer).direct->out].dtype = DType::kBF16;
  second.buffers[reader.x].dtype = DType::kBF16;
  ASSERT_TRUE(may_write_tiled_rows(first, second));

  std::vector<float> weights(static_cast<size_t>(kMiddle * kInputs));
  const auto first_slots =
      in_slots(random, WeightFormat::kQ4_K, kMiddle, kInputs, writer.packing, {}, weights);
  const auto second_slots =
      in_slots(random, WeightFormat::kQ8_0, kOutputs, kMiddle, reader.packing, {}, weights);
  const std::vector<float> x = random_values(random, kRows * kInputs);
  const auto workspace = [&](const Kernel& kernel) { return workspace_of(kernel, dims, kRows); };
  std::array<std::vector<float>, 2> outputs;
  for (const bool tiled : {false, true}) {
    writer.tiled_output = reader.tiled_input = tiled;
    std::vector<float>& out = outputs[tiled ? 1 : 0];
    out.assign(static_cast<size_t>(kRows * kOutputs), std::nanf(""));
    const uint64_t middle = on_device(nullptr, static_cast<size_t>(kRows * kMiddle) * 4);
    const uint64_t dims_there = on_device(sizes, sizeof sizes);
    Arguments of_first{on_device(x.data(), x.size() * 4),
                       on_device(first_slots.data(), first_slots.size()), middle, dims_there,
                       workspace(first)};
    Arguments of_second{middle, on_device(second_slots.data(), second_slots.size()),
                        on_device(out.data(), out.size() * 4), dims_there, workspace(second)};
    size_t launches = 0;
    for (auto [kernel, arguments] :
         {std::pair(&first, &of_first), std::pair(&second, &of_second)}) {
      void* module = nullptr;
      ASSERT_NO_FATAL_FAILURE(load(*kernel, module));
      for (const CudaLaunch& of : cuda_launches(*kernel, dims, kRows).run) {
        ASSERT_NO_FATAL_FAILURE(launch(module, of, *arguments));
        ++launches;
      }
    }
    EXPECT_EQ(launches, tiled ? 3U : 4U);
    ASSERT_EQ(driver_->download(out.data(), of_second.out, out.size() * 4), 0);
  }
  EXPECT_TRUE(std::ranges::all_of(outputs[0], [](float value) { return std::isfinite(value); }));
  EXPECT_EQ(outputs[0], outputs[1]);
}

// Weights in blocks as the library gets them: all values, in the order of the packed columns.
class CudaDecodedWeights : public CudaProductCases {};
TEST_P(CudaDecodedWeights, AreTheBlocksValuesInBf16) {
  const auto [format, inputs, rows, outputs, ordered] = GetParam();
  const std::vector<int32_t> order = ordered ? some_order(inputs) : std::vector<int32_t>();
  const Graph graph = product_graph(inputs, outputs, format, ordered ? order.data() : nullptr);
  const auto kernel = lower(graph, graph.nodes.back(), {}, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  const auto& product = std::get<ProductKernel>(kernel->body);
  ASSERT_EQ(kernel->buffers[product.weight].dtype, DType::kBF16);
  void* module = nullptr;
  ASSERT_NO_FATAL_FAILURE(load(*kernel, module));

  Random random(static_cast<uint64_t>(inputs));
  std::vector<float> weights(static_cast<size_t>(outputs * inputs));
  const auto slots = in_slots(random, format, outputs, inputs, product.packing, order, weights);
  const int64_t columns = packed_columns(product.packing);
  const int64_t pitch = Packing::padded_inputs(inputs);
  std::vector<uint16_t> decoded(static_cast<size_t>(columns * pitch), 0x7fff);  // NaN
  const int64_t sizes[] = {rows, 1, rows, rows};
  Arguments arguments{on_device(nullptr, 4), on_device(slots.data(), slots.size()),
                      on_device(nullptr, 4), on_device(sizes, sizeof sizes),
                      on_device(decoded.data(), decoded.size() * 2)};
  const auto decode =
      cuda_launches(*kernel, {.batch = rows, .q_len = 1, .kv_len = rows}, rows).decode;
  ASSERT_TRUE(decode);
  ASSERT_NO_FATAL_FAILURE(launch(module, *decode, arguments));
  ASSERT_EQ(driver_->download(decoded.data(), arguments.workspace, decoded.size() * 2), 0);
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t output = packed_output(product.packing, column);
    const float* row = output < 0 ? nullptr : weights.data() + output * inputs;
    float largest = 0.0f;
    for (int64_t i = 0; row != nullptr && i < inputs; ++i) {
      largest = std::max(largest, std::abs(row[i]));
    }
    for (int64_t i = 0; i < inputs; ++i) {
      const float expected = row == nullptr ? 0.0f : row[i];
      // Half a unit of bf16's last place, and what is lost where a minimum is nearly all of a
      // value.
      ASSERT_NEAR(bf16_to_f32(decoded[static_cast<size_t>(column * pitch + i)]), expected,
                  std::abs(expected) / 256 + 1e-6f * largest)
          << column << ", " << i;
    }
  }
}

// Blocks of e4m3 as cuBLASLt multiplies them: rows of codes, and a scale a column.
class CudaFp8Rows : public CudaProductCases {};
TEST_P(CudaFp8Rows, AreTheBlocksCodes) {
  const auto [format, inputs, rows, outputs, same_scales] = GetParam();
  const Graph graph = product_graph(inputs, outputs, format, nullptr);
  const auto kernel = lower(graph, graph.nodes.back(), {}, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  const Packing& packing = std::get<ProductKernel>(kernel->body).packing;
  const auto cubin = nvrtc_->compile(print_fp8_blocks(format, inputs), "sm_90a");
  ASSERT_TRUE(cubin) << cubin.error().message;
  void* module = nullptr;
  ASSERT_EQ(driver_->load(cubin->bytes, module), 0);

  Random random(static_cast<uint64_t>(inputs));
  std::vector<float> weights(static_cast<size_t>(outputs * inputs));
  const auto slots = in_slots(random, format, outputs, inputs, packing, {}, weights,
                              same_scales ? std::optional(0.0123f) : std::nullopt);
  const int64_t columns = packed_columns(packing);
  std::vector<uint8_t> codes(static_cast<size_t>(columns * inputs), 0x7f);
  std::vector<float> scales(static_cast<size_t>(columns), -1.0f);
  struct {
    uint64_t from, codes, scales;
  } arguments{on_device(slots.data(), slots.size()), on_device(codes.data(), codes.size()),
              on_device(scales.data(), scales.size() * 4)};
  void* function = nullptr;
  ASSERT_EQ(driver_->find(module, "assay_round", function), 0);
  const auto blocks = static_cast<unsigned>(columns / CudaSlot::kColumns);
  ASSERT_EQ(driver_->launch(function, blocks, 1, 1, kCudaThreads, 0, &arguments), 0);
  ASSERT_EQ(driver_->download(codes.data(), arguments.codes, codes.size()), 0);
  ASSERT_EQ(driver_->download(scales.data(), arguments.scales, scales.size() * 4), 0);
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t output = packed_output(packing, column);
    const float scale = scales[static_cast<size_t>(column)];
    for (int64_t i = 0; i < inputs; ++i) {
      const float expected = output < 0 ? 0.0f : weights[static_cast<size_t>(output * inputs + i)];
      const float found = scale * e4m3_to_f32(codes[static_cast<size_t>(column * inputs + i)]);
      // One scale: exactly. Else half a unit of e4m3's last place, or of its smallest.
      const float most = same_scales ? 0.0f : std::abs(expected) / 16 + scale / 1024;
      ASSERT_LE(std::abs(found - expected), most) << column << ", " << i;
    }
  }
}
std::vector<ProductCase> fp8_cases() {
  std::vector<ProductCase> cases;
  for (const WeightFormat format : {WeightFormat::kFp8_G32, WeightFormat::kFp8_G128}) {
    for (const bool same : {false, true}) cases.push_back({format, 384, 1, kOutputs, same});
  }
  return cases;
}

// A table of embeddings in blocks, whose rows several blocks of the launch share.
class CudaTables : public CudaProductCases {};
TEST_P(CudaTables, RowsAreTheBlocksValues) {
  const auto [format, inputs, rows, outputs, ordered] = GetParam();
  const GraphBuilder::MixedWeights weights{{{"table", Shape{outputs, inputs}, format}}};
  GraphBuilder builder(weights, DType::kF32, false, false);
  const auto graph =
      builder.finish({builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")})});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto kernel = lower(*graph, graph->nodes.back(), {}, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  void* module = nullptr;
  ASSERT_NO_FATAL_FAILURE(load(*kernel, module));

  Random random(static_cast<uint64_t>(inputs));
  std::vector<float> values(static_cast<size_t>(outputs * inputs));
  const auto slots = in_slots(random, format, outputs, inputs,
                              {.segments = {outputs}, .layout = TileLayout::kRows}, {}, values);
  const std::vector<int32_t> ids{3, 0, static_cast<int32_t>(outputs) - 1, 17};
  const auto count = static_cast<int64_t>(ids.size());
  std::vector<float> out(ids.size() * static_cast<size_t>(inputs), std::nanf(""));
  const int64_t sizes[] = {count, 1, count, count};
  Arguments arguments{on_device(ids.data(), ids.size() * 4), on_device(slots.data(), slots.size()),
                      on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes), 0};
  const DimValues dims{.batch = count, .q_len = 1, .kv_len = count};
  const std::vector<CudaLaunch> run = cuda_launches(*kernel, dims, count).run;
  ASSERT_EQ(run.size(), 1);
  EXPECT_GT(run.front().blocks_y, 1);
  ASSERT_NO_FATAL_FAILURE(launch(module, run.front(), arguments));
  ASSERT_EQ(driver_->download(out.data(), arguments.out, out.size() * 4), 0);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / static_cast<size_t>(inputs), column = i % static_cast<size_t>(inputs);
    const float expected =
        values[static_cast<size_t>(ids[row]) * static_cast<size_t>(inputs) + column];
    ASSERT_NEAR(out[i], expected, 1e-6f * std::abs(expected) + 1e-7f) << row << ", " << column;
  }
}
std::vector<ProductCase> table_cases() {
  std::vector<ProductCase> cases;
  for (const FormatTraits& t : kFormats) {
    if (t.in_blocks()) cases.push_back({t.format, 768, 4});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, CudaTileScales,
    testing::Values(TileScales{WeightFormat::kQ8_0, 2040}, TileScales{WeightFormat::kIQ4_NL, 2040},
                    TileScales{WeightFormat::kQ4_0, 32640}, TileScales{WeightFormat::kQ4_1, 32640},
                    TileScales{WeightFormat::kQ5_0, 16320},
                    TileScales{WeightFormat::kQ4_K, 32640 / 63},
                    TileScales{WeightFormat::kQ5_K, 16320 / 63},
                    TileScales{WeightFormat::kQ6_K, 8160 / 128},
                    TileScales{WeightFormat::kInt4_G64, 65504}),
    [](const auto& test) { return std::string(traits(test.param.format).name); });
INSTANTIATE_TEST_SUITE_P(Formats, CudaFp8Rows, testing::ValuesIn(fp8_cases()),
                         [](const auto& test) {
                           return fmt::format("{}{}", traits(test.param.format).name,
                                              test.param.ordered ? "_same_scales" : "");
                         });
INSTANTIATE_TEST_SUITE_P(Formats, CudaTables, testing::ValuesIn(table_cases()),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(Formats, CudaDecodedWeights, testing::ValuesIn(decoded_cases()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine::test
