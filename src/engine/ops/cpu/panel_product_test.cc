// Panel products against plain loops, over shapes around the kernel's blocks and groups.
#include "engine/ops/cpu/panel_product.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "engine/memory/huge_memory.h"
#include "engine/model/convert.h"
#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/row_groups.h"
#include "engine/weight_layout.h"

namespace assay::engine {
namespace {

constexpr int64_t kPanel = Packing::kPanel;

std::vector<float> random_values(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

// rows, inputs, panels
using ShapeCase = std::tuple<int64_t, int64_t, int64_t>;

void check(const ShapeCase& shape, DType dtype, DType x_dtype = DType::kF32) {
  const auto [rows, inputs, panels] = shape;
  SCOPED_TRACE(fmt::format("{} x {} x {} {}", rows, inputs, panels, dtype_name(dtype)));
  Random random(3);
  const int64_t x_pitch = cpu::panel_row_pitch(inputs, x_dtype);
  const int64_t out_pitch = panels * kPanel + 3;
  std::vector<float> x = random_values(random, rows * x_pitch);
  std::vector<uint16_t> rounded(x.size());
  if (x_dtype == DType::kBF16) {
    for (int64_t r = 0; r < rows; ++r) {
      std::fill_n(&x[static_cast<size_t>(r * x_pitch + inputs)],
                  cpu::panel_row_inputs(inputs) - inputs, 0.0f);
    }
    cpu::round_to_bf16(x.data(), rows * x_pitch, rounded.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(rounded[i], f32_to_bf16(x[i]));
      x[i] = bf16_to_f32(rounded[i]);
    }
  }
  const std::vector<float> weights =
      random_values(random, panels * Packing::padded_inputs(inputs) * kPanel);
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
  const void* const given = x_dtype == DType::kBF16 ? static_cast<const void*>(rounded.data())
                                                    : static_cast<const void*>(x.data());
  cpu::panel_product({.x = given,
                      .x_dtype = x_dtype,
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
      const int64_t panel = c / kPanel * Packing::padded_inputs(inputs) * kPanel;
      for (int64_t i = 0; i < inputs; ++i) {
        const int64_t at = panel + Packing::element(dtype, i, c % kPanel);
        expected += double{x[static_cast<size_t>(r * x_pitch + i)]} *
                    double{stored[static_cast<size_t>(at)]};
      }
      ASSERT_NEAR(found, expected, 2e-5 * std::sqrt(static_cast<double>(inputs))) << r << ", " << c;
    }
  }
}

const std::vector<ShapeCase>& shapes() {
  static const std::vector<ShapeCase> shapes = {
      {1, 1, 1},    {3, 17, 2},  {6, 16, 1},    {7, 33, 1},    {13, 64, 3},  {14, 40, 1},
      {20, 512, 1}, {9, 513, 2}, {15, 1100, 1}, {11, 1025, 1}, {2, 2100, 1}, {31, 96, 1}};
  return shapes;
}

TEST(PanelProduct, EqualsPlainLoopsOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (const ShapeCase& shape : shapes()) {
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) check(shape, dtype);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(PanelProduct, PairsOfBf16EqualPlainLoopsOverRoundedInputs) {
  EXPECT_EQ(cpu::panel_x_dtype(DType::kF32), DType::kF32);
  EXPECT_EQ(cpu::panel_x_dtype(DType::kF16), DType::kF32);
  if (!cpu::has_bf16_dot()) GTEST_SKIP() << "this processor has no dot product of bf16";
  EXPECT_EQ(cpu::panel_x_dtype(DType::kBF16), DType::kBF16);
  for (const ShapeCase& shape : shapes()) check(shape, DType::kBF16, DType::kBF16);
}

TEST(RowGroups, CoverRowsOnceAndDifferByOneAtMost) {
  for (int64_t rows = 1; rows < 40; ++rows) {
    int64_t next = 0, least = 6, largest = 0;
    cpu::for_row_groups<6>(rows, [&](auto count, int64_t row) {
      EXPECT_EQ(row, next);
      next += count();
      least = std::min<int64_t>(least, count());
      largest = std::max<int64_t>(largest, count());
    });
    EXPECT_EQ(next, rows);
    EXPECT_LE(largest - least, 1) << rows;
  }
}

TEST(PanelProduct, RowPitchesAreOddNumbersOfCacheLines) {
  for (const int64_t width : {1, 16, 17, 768, 2048, 4864}) {
    const int64_t pitch = cpu::panel_row_pitch(width, DType::kF32);
    EXPECT_GE(pitch, width);
    EXPECT_EQ(pitch % 32, 16);
    EXPECT_LT(pitch - width, 32 + 16);
    EXPECT_EQ(cpu::panel_row_pitch(width, DType::kBF16) % 64, 32);
  }
}

}  // namespace
}  // namespace assay::engine
