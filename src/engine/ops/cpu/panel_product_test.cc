// Panel products against plain loops, over shapes around the kernel's blocks and groups.
#include "engine/ops/cpu/panel_product.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "engine/device/huge_memory.h"
#include "engine/graph/graph.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

constexpr int64_t kPanel = Packing::kPanel;

int64_t padded(int64_t inputs) {
  return (inputs + Packing::kPanelInputs - 1) / Packing::kPanelInputs * Packing::kPanelInputs;
}

std::vector<float> random_values(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

// rows, inputs, panels
using ShapeCase = std::tuple<int64_t, int64_t, int64_t>;

void check(const ShapeCase& shape, DType dtype) {
  const auto [rows, inputs, panels] = shape;
  SCOPED_TRACE(fmt::format("{} x {} x {} {}", rows, inputs, panels, dtype_name(dtype)));
  Random random(3);
  const int64_t x_pitch = cpu::panel_row_pitch(inputs);
  const int64_t out_pitch = panels * kPanel + 3;
  const std::vector<float> x = random_values(random, rows * x_pitch);
  const std::vector<float> weights = random_values(random, panels * padded(inputs) * kPanel);
  auto packed = HugeMemory::allocate(weights.size() * dtype_size_bytes(dtype));
  auto scratch = HugeMemory::allocate(static_cast<size_t>(cpu::panel_scratch_floats()) * 4);
  ASSERT_TRUE(packed && scratch);
  convert({reinterpret_cast<const std::byte*>(weights.data()), DType::kF32,
           Shape{static_cast<int64_t>(weights.size())}},
          dtype, packed->data());
  std::vector<float> stored(weights.size());  // as the type keeps them
  convert({packed->data(), dtype, Shape{static_cast<int64_t>(weights.size())}}, DType::kF32,
          reinterpret_cast<std::byte*>(stored.data()));
  constexpr float kUntouched = -77;
  std::vector<float> out(static_cast<size_t>(rows * out_pitch), kUntouched);
  cpu::panel_product({.x = x.data(),
                      .x_pitch = x_pitch,
                      .rows = rows,
                      .inputs = inputs,
                      .panels = packed->data(),
                      .dtype = dtype,
                      .panel_count = panels,
                      .out = out.data(),
                      .out_pitch = out_pitch},
                     reinterpret_cast<float*>(scratch->data()));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < out_pitch; ++c) {
      const float found = out[static_cast<size_t>(r * out_pitch + c)];
      if (c >= panels * kPanel) {
        ASSERT_EQ(found, kUntouched) << r << ", " << c;
        continue;
      }
      double expected = 0;
      const int64_t panel = c / kPanel * padded(inputs) * kPanel + c % kPanel;
      for (int64_t i = 0; i < inputs; ++i) {
        expected += double{x[static_cast<size_t>(r * x_pitch + i)]} *
                    double{stored[static_cast<size_t>(panel + i * kPanel)]};
      }
      ASSERT_NEAR(found, expected, 2e-5 * std::sqrt(static_cast<double>(inputs))) << r << ", " << c;
    }
  }
}

TEST(PanelProduct, EqualsPlainLoopsOnEveryTarget) {
  const std::vector<ShapeCase> shapes = {{1, 1, 1},    {3, 17, 2},  {6, 16, 1},
                                         {7, 33, 1},   {13, 64, 3}, {14, 40, 1},
                                         {20, 512, 1}, {9, 513, 2}, {15, 1100, 1}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (const ShapeCase& shape : shapes) {
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) check(shape, dtype);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(PanelProduct, RowPitchesAreOddNumbersOfCacheLines) {
  for (const int64_t width : {1, 16, 17, 768, 2048, 4864}) {
    const int64_t pitch = cpu::panel_row_pitch(width);
    EXPECT_GE(pitch, width);
    EXPECT_EQ(pitch % 32, 16);
    EXPECT_LT(pitch - width, 32 + 16);
  }
}

}  // namespace
}  // namespace assay::engine
