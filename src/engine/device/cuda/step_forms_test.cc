// The part of a multiprocessor's memory that a step's forms keep for blocks.
#include "engine/device/cuda/step_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/device/cuda/fake_gpu.h"
#include "engine/passes/test_models.h"

namespace assay::engine::cuda {
namespace {

class StepFormsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = Driver::open();
    ASSERT_TRUE(driver) << driver.error().message;
    driver_ = std::move(*driver);
    auto nvrtc = Nvrtc::open();
    ASSERT_TRUE(nvrtc) << nvrtc.error().message;
    kernels_.emplace(*driver_, std::move(*nvrtc), std::nullopt);
  }

  // A step's, over a cache of this capacity.
  static StepPlan plan_of(int64_t capacity) {
    const engine::Graph graph = test::fused_graph(
        test::model_graph("llama3.2-1b", DType::kBF16, LogitsOf::kLastPosition, DType::kBF16),
        TileLayout::kRows);
    auto plan = make_step_plan(std::make_shared<const engine::Graph>(graph),
                               {.batch = {}, .q_len = 1, .kv_len = {}, .capacity = capacity}, true,
                               TileLayout::kRows);
    EXPECT_TRUE(plan) << plan.error().message;
    narrow_values(*plan);
    return *std::move(plan);
  }

  const FakeCuda fake_;
  std::unique_ptr<Driver> driver_;
  std::optional<KernelStore> kernels_;
};

TEST_F(StepFormsTest, KeepAShareOfTheMemoryByTheRunsRows) {
  StepPlan plan = plan_of(100);
  StepForms forms(plan, *kernels_, *driver_, false);
  // Each as if it were the first: rings of few rows leave room for a cache, those of warpgroups
  // none, and one row has no ring.
  for (const auto& [rows, percent] :
       {std::pair{8, 60}, {32, 100}, {1, 0}, {16, 60}, {8, 60}, {2, 60}}) {
    ASSERT_TRUE(forms.choose({.batch = rows, .q_len = 1, .kv_len = 100})) << rows;
    EXPECT_EQ(forms.shared_percent(), percent) << rows;
  }
}

// A prompt's row has its products' weights through the cache, by modules of its own: those of a
// step keep what the driver chooses.
TEST_F(StepFormsTest, APromptsRowSharesNoModuleWithSteps) {
  StepPlan step = plan_of(100), prompt = plan_of(100);
  prompt.dims.q_len = 24;
  StepForms of_step(step, *kernels_, *driver_, false),
      of_prompt(prompt, *kernels_, *driver_, false);
  ASSERT_TRUE(of_step.choose({.batch = 1, .q_len = 1, .kv_len = 100}));
  ASSERT_TRUE(of_prompt.choose({.batch = 1, .q_len = 24, .kv_len = 100}));
  int same_texts = 0;
  for (size_t i = 0; i < step.kernels.size(); ++i) {
    const auto* product = std::get_if<ProductKernel>(&step.kernels[i].kernel.body);
    if (product == nullptr || of_step.text_sha256(i) != of_prompt.text_sha256(i)) continue;
    const CudaLaunch launch{.entry = "assay_run"};
    const auto of_steps = of_step.function(i, launch), of_prompts = of_prompt.function(i, launch);
    ASSERT_TRUE(of_steps && of_prompts);
    EXPECT_NE(*of_steps, *of_prompts) << step.kernels[i].kernel.label;
    ++same_texts;
  }
  EXPECT_GT(same_texts, 0);
}

// One row's weights in blocks have rings, beside which attention has no large block; two rows' have
// none of that form.
TEST_F(StepFormsTest, AttentionKnowsOfRingsBesideIt) {
  for (const bool in_blocks : {false, true}) {
    StepPlan plan = plan_of(5000);
    for (PlannedKernel& planned : plan.kernels) {
      const auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
      if (in_blocks && product != nullptr) {
        planned.kernel.buffers[product->weight].blocks = {WeightFormat::kQ8_0, product->inputs};
      }
    }
    StepForms forms(plan, *kernels_, *driver_, false);
    const auto attention = std::ranges::find_if(plan.kernels, [](const PlannedKernel& planned) {
      return std::holds_alternative<AttentionKernel>(planned.kernel.body);
    });
    ASSERT_NE(attention, plan.kernels.end());
    for (const int64_t rows : {1, 2, 1}) {
      ASSERT_TRUE(forms.choose({.batch = rows, .q_len = 1, .kv_len = 100}));
      const bool beside = in_blocks && rows == 1;
      EXPECT_EQ(attention->kernel.beside_rings, beside) << in_blocks << rows;
      EXPECT_EQ(cuda_form(attention->kernel).shared_bytes, (beside ? 64 : 128) * 1024);
    }
  }
}

}  // namespace
}  // namespace assay::engine::cuda
