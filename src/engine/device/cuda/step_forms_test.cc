// The part of a multiprocessor's memory that a step's forms keep for blocks.
#include "engine/device/cuda/step_forms.h"

#include <gtest/gtest.h>

#include "engine/device/cuda/fake_gpu.h"
#include "engine/passes/test_models.h"

namespace assay::engine::cuda {
namespace {

TEST(StepForms, KeepAShareOfTheMemoryByTheRunsRows) {
  const FakeCuda fake;
  auto driver = Driver::open();
  ASSERT_TRUE(driver) << driver.error().message;
  auto nvrtc = Nvrtc::open();
  ASSERT_TRUE(nvrtc) << nvrtc.error().message;
  KernelStore kernels(**driver, std::move(*nvrtc), std::nullopt);
  const engine::Graph graph = test::fused_graph(
      test::model_graph("llama3.2-1b", DType::kBF16, LogitsOf::kLastPosition, DType::kBF16),
      TileLayout::kRows);
  auto plan = make_step_plan(std::make_shared<const engine::Graph>(graph),
                             {.batch = {}, .q_len = 1, .kv_len = {}, .capacity = 100}, true,
                             TileLayout::kRows);
  ASSERT_TRUE(plan) << plan.error().message;
  narrow_values(*plan);
  StepForms forms(*plan, kernels, **driver, false);
  // Each as if it were the first: rings of few rows leave room for a cache, those of warpgroups
  // none, and one row has no ring.
  for (const auto& [rows, percent] :
       {std::pair{8, 60}, {32, 100}, {1, 0}, {16, 60}, {8, 60}, {2, 60}}) {
    ASSERT_TRUE(forms.choose({.batch = rows, .q_len = 1, .kv_len = 100})) << rows;
    EXPECT_EQ(forms.shared_percent(), percent) << rows;
  }
}

}  // namespace
}  // namespace assay::engine::cuda
