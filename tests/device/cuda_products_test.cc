// Product kernels on a real GPU against sums in double: every weight type, odd and even numbers of
// inputs, few rows and many. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "base/random.h"
#include "cuda_driver.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

constexpr int64_t kOutputs = 200;  // the last panel is not full
// Two turns of a block, but for the last one's.
constexpr int64_t kManyOutputs = 5400;

std::vector<float> random_values(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

// x . w^T, x computed by another node.
Graph product_graph(int64_t inputs, int64_t outputs, DType dtype) {
  GraphBuilder graph({{"table", Shape{1, inputs}}, {"w.weight", Shape{outputs, inputs}}}, dtype);
  const auto x = graph.add(OpKind::kEmbedding, {graph.ids(), graph.weight("table")});
  auto built = graph.finish({graph.linear(x, "w", false, WeightLayout::kOutIn)});
  EXPECT_TRUE(built);
  return std::move(built).value();
}

struct ProductCase {
  DType dtype;
  int64_t inputs, rows, outputs = kOutputs;
};
std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t inputs : {17, 64, 513, 896, 4864, 17000}) {
      for (const int64_t rows : {1, 3, 8}) cases.push_back({dtype, inputs, rows});
    }
  }
  cases.push_back({DType::kBF16, 64, 1, kManyOutputs});
  return cases;
}
std::string name_of(const ProductCase& of) {
  return fmt::format("{}_{}_inputs_{}_rows{}", dtype_name(of.dtype), of.inputs, of.rows,
                     of.outputs == kOutputs ? "" : "_many_outputs");
}

class CudaProducts : public testing::TestWithParam<ProductCase> {
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

  std::optional<test::CudaDriver> driver_;
  std::optional<Nvrtc> nvrtc_;
};

TEST_P(CudaProducts, EqualSumsInDouble) {
  const auto [dtype, inputs, rows, outputs] = GetParam();
  const Graph graph = product_graph(inputs, outputs, dtype);
  const auto kernel =
      lower(graph, graph.nodes.back(), {.batch = 1, .q_len = rows, .kv_len = {}, .capacity = {}},
            TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  const auto source = print_cuda(*kernel);
  ASSERT_TRUE(source) << source.error().message;
  const auto cubin = nvrtc_->compile(*source, "sm_90a");
  ASSERT_TRUE(cubin) << cubin.error().message;

  Random random(static_cast<uint64_t>(inputs * 100 + rows));
  const auto& product = std::get<ProductKernel>(kernel->body);
  const std::vector<float> x = random_values(random, rows * inputs);
  std::vector<float> weights = random_values(random, outputs * inputs);
  const auto packed = in_rows(weights, inputs, dtype, product.packing);
  std::vector<float> out(static_cast<size_t>(rows * outputs), std::nanf(""));
  const DimValues dims{.batch = 1, .q_len = rows, .kv_len = rows};
  const int64_t sizes[] = {1, rows, rows, rows};
  struct {
    uint64_t x, weight, out, dims, workspace;  // struct Args: three buffers, dims, workspace
  } arguments{
      on_device(x.data(), x.size() * 4), on_device(packed.data(), packed.size()),
      on_device(out.data(), out.size() * 4), on_device(sizes, sizeof sizes),
      on_device(nullptr, static_cast<size_t>(cuda_workspace_floats(*kernel, dims, rows)) * 4)};
  void* module = nullptr;
  ASSERT_EQ(driver_->load(cubin->bytes, module), 0);
  for (int repeat = 0; repeat < 3; ++repeat) {  // counters are zeros again after each
    for (const CudaLaunch& launch : cuda_launches(*kernel, dims, rows).run) {
      void* function = nullptr;
      ASSERT_EQ(driver_->find(module, launch.entry, function), 0);
      ASSERT_EQ(driver_->launch(function, static_cast<unsigned>(launch.blocks_x),
                                static_cast<unsigned>(launch.blocks_y),
                                static_cast<unsigned>(launch.blocks_z),
                                static_cast<unsigned>(launch.threads),
                                static_cast<unsigned>(launch.shared_bytes), &arguments),
                0);
    }
  }
  ASSERT_EQ(driver_->download(out.data(), arguments.out, out.size() * 4), 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < outputs; ++o) {
      double expected = 0;
      for (int64_t i = 0; i < inputs; ++i) {
        expected += double{x[static_cast<size_t>(r * inputs + i)]} *
                    double{weights[static_cast<size_t>(o * inputs + i)]};
      }
      ASSERT_NEAR(out[static_cast<size_t>(r * outputs + o)], expected,
                  2e-6 * std::sqrt(static_cast<double>(inputs)))
          << r << ", " << o;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaProducts,
    testing::ValuesIn(
        test::chosen(product_cases(), &name_of,
                     {"fp32_17_inputs_3_rows", "fp32_64_inputs_3_rows", "fp32_896_inputs_8_rows",
                      "fp32_4864_inputs_8_rows", "bf16_17_inputs_8_rows", "bf16_64_inputs_8_rows",
                      "bf16_64_inputs_1_rows_many_outputs", "bf16_513_inputs_3_rows",
                      "bf16_17000_inputs_1_rows", "fp16_17_inputs_8_rows", "fp16_64_inputs_3_rows",
                      "fp16_896_inputs_1_rows", "fp16_4864_inputs_8_rows"})),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine
