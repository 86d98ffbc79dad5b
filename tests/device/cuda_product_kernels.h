// The common part of tests of single product kernels on a GPU: graphs, weights as kernels read
// them, and launches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "cuda_driver.h"
#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/convert.h"
#include "engine/random_blocks.h"

namespace assay::engine::test {

constexpr int64_t kOutputs = 200;  // the last panel is not full

inline std::vector<float> random_values(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

inline std::vector<int32_t> some_order(int64_t inputs) {
  std::vector<int32_t> order(static_cast<size_t>(inputs));
  for (int64_t i = 0; i < inputs; ++i) {
    order[static_cast<size_t>(i)] = static_cast<int32_t>(i * 5 % inputs);
  }
  return order;
}

// x . w^T, x computed by another node. `order`: TensorView::input_order, of the weight.
inline Graph product_graph(int64_t inputs, int64_t outputs, WeightFormat format,
                           const int32_t* order) {
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
inline std::string name_of(const ProductCase& of) {
  return fmt::format("{}_{}_inputs_{}_rows{}", traits(of.format).name, of.inputs, of.rows,
                     of.outputs == kOutputs ? "" : fmt::format("_{}_outputs", of.outputs)) +
         (of.ordered ? "_ordered" : "");
}

class CudaProductKernels : public testing::Test {
 protected:
  void SetUp() override {
    driver_ = assay::test::CudaDriver::open();
    if (!driver_) GTEST_SKIP() << "no GPU here";
    auto nvrtc = Nvrtc::open();
    if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
    nvrtc_.emplace(std::move(nvrtc).value());
  }

  uint64_t workspace_of(const Kernel& kernel, const DimValues& dims, int64_t capacity) {
    const CudaWorkspace sizes = cuda_workspace(kernel, dims, capacity);
    return sizes.place_in(on_device(nullptr, sizes.bytes()));
  }

  // True if words and counters are zeros again: each block has taken the floats left for it.
  bool is_clean(const Kernel& kernel, const DimValues& dims, int64_t capacity, uint64_t workspace) {
    const CudaWorkspace sizes = cuda_workspace(kernel, dims, capacity);
    const auto words = static_cast<size_t>(sizes.words + (sizes.floats > 0 ? kCudaCounters : 0));
    std::vector<uint32_t> found(words);
    const uint64_t begin = workspace - static_cast<uint64_t>(sizes.words) * sizeof(float);
    EXPECT_EQ(driver_->download(found.data(), begin, words * sizeof(float)), 0);
    return std::ranges::all_of(found, [](uint32_t word) { return word == 0; });
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
    const int64_t groups = packed_columns(packing) / CudaSlot::kColumns;
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

  std::optional<assay::test::CudaDriver> driver_;
  std::optional<Nvrtc> nvrtc_;
};

}  // namespace assay::engine::test
