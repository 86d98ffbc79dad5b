// Product kernels on a real GPU against sums in double: every weight format, odd and even numbers
// of inputs, few rows and many. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "base/random.h"
#include "cuda_driver.h"
#include "engine/block_cells.h"
#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/convert.h"
#include "engine/random_blocks.h"

namespace assay::engine {
namespace {

constexpr int64_t kOutputs = 200;  // the last panel is not full
// Two turns of a block, but for the last one's.
constexpr int64_t kManyOutputs = 5400;
// More turns than a block of a row's columns in blocks asks for ahead.
constexpr int64_t kTileOutputs = 320;
constexpr int64_t kTurns = 40'000, kFewerTurns = 21'136;

std::vector<float> random_values(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

std::vector<int32_t> some_order(int64_t inputs) {
  std::vector<int32_t> order(static_cast<size_t>(inputs));
  for (int64_t i = 0; i < inputs; ++i) {
    order[static_cast<size_t>(i)] = static_cast<int32_t>(i * 5 % inputs);
  }
  return order;
}

// x . w^T, x computed by another node. `order`: TensorView::input_order, of the weight.
Graph product_graph(int64_t inputs, int64_t outputs, WeightFormat format, const int32_t* order) {
  GraphBuilder::MixedWeights weights{
      {{"table", Shape{1, inputs}}, {"w.weight", Shape{outputs, inputs}, format}}};
  weights.specs.back().input_order = order;
  GraphBuilder graph(weights, DType::kF32, false, false);
  const auto x = graph.add(OpKind::kEmbedding, {graph.ids(), graph.weight("table")});
  auto built = graph.finish({graph.linear(x, "w", false, WeightLayout::kOutIn)});
  EXPECT_TRUE(built);
  return std::move(built).value();
}

struct ProductCase {
  WeightFormat format;
  int64_t inputs, rows, outputs = kOutputs;
  bool ordered = false;  // stored inputs have an order of their own
  // More rows than a kernel for a few takes, in a step that is for any number.
  bool any_rows() const { return rows == 19; }
  // Blocks that have several tiles and parts of others, as those of large weights have.
  bool few_blocks() const { return rows == 140; }
};
std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kF16}) {
    for (const int64_t inputs : {17, 64, 513, 896, 4864, 17000}) {
      for (const int64_t rows : {1, 3, 8}) cases.push_back({format, inputs, rows});
    }
  }
  cases.push_back({WeightFormat::kBF16, 64, 1, kManyOutputs});
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
  }
  cases.push_back({WeightFormat::kQ4_0, 96, 1, kTurns});
  cases.push_back({WeightFormat::kQ8_0, 1152, 1, kFewerTurns});
  cases.push_back({WeightFormat::kQ6_K, 3072, 1, kManyOutputs});
  for (const int64_t rows : {1, 8, 12, 19}) {
    cases.push_back({WeightFormat::kInt4_G64, 1152, rows, kOutputs, true});
  }
  return cases;
}
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
std::string name_of(const ProductCase& of) {
  return fmt::format("{}_{}_inputs_{}_rows{}", traits(of.format).name, of.inputs, of.rows,
                     of.outputs == kOutputs ? "" : fmt::format("_{}_outputs", of.outputs)) +
         (of.ordered ? "_ordered" : "");
}

class CudaProductKernels : public testing::Test {
 protected:
  void SetUp() override {
    driver_ = test::CudaDriver::open();
    if (!driver_) GTEST_SKIP() << "no GPU here";
    auto nvrtc = Nvrtc::open();
    if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
    nvrtc_.emplace(std::move(nvrtc).value());
  }

  uint64_t on_device(const void* data, size_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(driver_->allocate(std::max<size_t>(bytes, 4), address), 0);  // the driver refuses 0
    if (data == nullptr) {
      EXPECT_EQ(driver_->fill(address, 0, bytes), 0);
    } else {
      EXPECT_EQ(driver_->upload(address, data, bytes), 0);
    }
    return address;
  }

  // The matrix [outputs, inputs] in rows of its type; `values` become what the type holds.
  std::vector<std::byte> in_rows(std::vector<float>& values, int64_t inputs, DType dtype,
                                 const Packing& packing) {
    const int64_t outputs = static_cast<int64_t>(values.size()) / inputs;
    const auto round = [&](std::vector<float>& floats, std::byte* to) {
      convert({reinterpret_cast<const std::byte*>(floats.data()), DType::kF32,
               Shape{static_cast<int64_t>(floats.size())}},
              dtype, to);
    };
    const int64_t padded = Packing::padded_inputs(inputs);
    std::vector<float> packed(static_cast<size_t>(packed_elements(packing, inputs)));
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t i = 0; i < inputs; ++i) {
        packed[static_cast<size_t>(o * padded + i)] = values[static_cast<size_t>(o * inputs + i)];
      }
    }
    std::vector<std::byte> bytes(packed.size() * dtype_size_bytes(dtype));
    round(packed, bytes.data());
    std::vector<std::byte> kept(values.size() * dtype_size_bytes(dtype));
    round(values, kept.data());
    convert({kept.data(), dtype, Shape{static_cast<int64_t>(values.size())}}, DType::kF32,
            reinterpret_cast<std::byte*>(values.data()));
    return bytes;
  }

  // The same of random blocks, whose values become `values`. `scale`: of all of them.
  static std::vector<std::byte> in_slots(Random& random, WeightFormat format, int64_t outputs,
                                         int64_t inputs, const Packing& packing,
                                         std::span<const int32_t> order, std::vector<float>& values,
                                         std::optional<float> scale = {}) {
    auto blocks = random_blocks(random, format, Shape{outputs, inputs});
    const size_t block = traits(format).block_bytes;
    for (size_t at = 0; scale && at < blocks.size(); at += block) {
      put_scale(format, blocks.data() + at, *scale);
    }
    TensorView view(blocks.data(), format, Shape{outputs, inputs});
    if (!order.empty()) view.input_order = order.data();
    for (int64_t o = 0; o < outputs; ++o) decode_row(view, o, values.data() + o * inputs);
    const int64_t groups = tile_count(packing) * packing.tile / CudaSlot::kColumns;
    const auto bytes = static_cast<size_t>(cuda_group_bytes(format, inputs));
    std::vector<std::byte> slots(static_cast<size_t>(groups) * bytes);
    for (int64_t group = 0; group < groups; ++group) {
      std::array<const std::byte*, CudaSlot::kColumns> columns{};
      for (size_t c = 0; c < columns.size(); ++c) {
        const int64_t output =
            packed_output(packing, group * CudaSlot::kColumns + static_cast<int64_t>(c));
        if (output >= 0) columns[c] = view.row(output);
      }
      pack_cuda_group(format, columns, inputs, slots.data() + static_cast<size_t>(group) * bytes);
    }
    const auto behind = std::as_bytes(order);
    slots.insert(slots.end(), behind.begin(), behind.end());
    return slots;
  }

  // A kernel's entry points.
  void load(const Kernel& kernel, void*& module) {
    const auto source = print_cuda(kernel);
    ASSERT_TRUE(source) << source.error().message;
    const auto cubin = nvrtc_->compile(*source, "sm_90a");
    ASSERT_TRUE(cubin) << cubin.error().message;
    ASSERT_EQ(driver_->load(cubin->bytes, module), 0);
  }
  struct Arguments {  // the printed struct Args of three buffers
    uint64_t x, weight, out, dims, workspace;
  };
  void launch(void* module, const CudaLaunch& of, Arguments& arguments) {
    void* function = nullptr;
    ASSERT_EQ(driver_->find(module, of.entry, function), 0);
    ASSERT_EQ(driver_->launch(function, static_cast<unsigned>(of.blocks_x),
                              static_cast<unsigned>(of.blocks_y),
                              static_cast<unsigned>(of.blocks_z), static_cast<unsigned>(of.threads),
                              static_cast<unsigned>(of.shared_bytes), &arguments),
              0);
  }

  std::optional<test::CudaDriver> driver_;
  std::optional<Nvrtc> nvrtc_;
};

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
  if (in_blocks) kernel->target = "sm_90a";  // as load() compiles
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
  Arguments arguments{
      on_device(x.data(), x.size() * 4), on_device(packed.data(), packed.size()),
      on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes),
      on_device(nullptr, static_cast<size_t>(cuda_workspace_floats(*kernel, dims, rows)) * 4)};
  for (int repeat = 0; repeat < 3; ++repeat) {  // counters are zeros again after each
    for (CudaLaunch of : cuda_launches(*kernel, dims, rows).run) {
      if (GetParam().few_blocks() && of.entry == "assay_run") of.blocks_x = 2 + repeat;
      ASSERT_NO_FATAL_FAILURE(launch(module, of, arguments));
    }
    const std::vector<float> before = out;
    ASSERT_EQ(driver_->download(out.data(), arguments.out, out.size() * 4), 0);
    const bool is_equal = std::memcmp(before.data(), out.data(), out.size() * 4) == 0;
    // Whoever comes last adds up what blocks share: in one order.
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
    Arguments arguments{
        on_device(x.data(), x.size() * 4), on_device(slots.data(), slots.size()),
        on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes),
        on_device(nullptr, static_cast<size_t>(cuda_workspace_floats(*kernel, dims, kRows)) * 4)};
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

// Weights in blocks as the library gets them: all values, in the order of the packed columns.
class CudaDecodedWeights : public CudaProducts {};
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
  const int64_t columns = tile_count(product.packing) * product.packing.tile;
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
class CudaFp8Rows : public CudaProducts {};
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
  const int64_t columns = tile_count(packing) * packing.tile;
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
class CudaTables : public CudaProducts {};
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
INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaProducts,
    testing::ValuesIn(test::chosen(product_cases(), &name_of,
                                   {"fp32_17_inputs_3_rows",
                                    "fp32_64_inputs_3_rows",
                                    "fp32_896_inputs_8_rows",
                                    "fp32_4864_inputs_8_rows",
                                    "bf16_17_inputs_8_rows",
                                    "bf16_64_inputs_8_rows",
                                    "bf16_64_inputs_1_rows_5400_outputs",
                                    "bf16_513_inputs_3_rows",
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
                                    "int4_g128_128_inputs_40_rows_320_outputs",
                                    "int4_g64_64_inputs_40_rows_320_outputs"})),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine
