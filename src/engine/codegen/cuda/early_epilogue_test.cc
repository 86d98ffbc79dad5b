// Which products' epilogues read memory ahead of the products.
#include "engine/codegen/cuda/early_epilogue.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/passes/test_models.h"
#include "engine/plan/step_plan.h"

namespace assay::engine {
namespace {

struct Counted {
  int products = 0, early = 0, steady = 0;
};

// The products of a fused step of one row.
Counted products_of(const std::string& architecture) {
  Graph graph = test::fused_graph(
      test::model_graph(architecture, DType::kBF16, LogitsOf::kLastPosition, DType::kBF16),
      TileLayout::kRows);
  const auto plan = make_step_plan(std::make_shared<const Graph>(std::move(graph)),
                                   {.batch = 1, .q_len = 1, .kv_len = {}, .capacity = 64}, true,
                                   TileLayout::kRows);
  EXPECT_TRUE(plan);
  Counted counted;
  for (const PlannedKernel& planned : plan->kernels) {
    const auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
    if (product == nullptr) continue;
    ++counted.products;
    const std::string text = early_epilogue_text(planned.kernel, *product);
    if (text.find("READS_EARLY = 1") != std::string::npos) ++counted.early;
    if (text.find("READS_STEADY = 1") != std::string::npos) ++counted.steady;
  }
  return counted;
}

// Gate and up, and the head, have products alone; RoPE's tables, biases and residuals are read.
TEST(EarlyEpilogue, ReadsWhatIsNoProduct) {
  const Counted llama = products_of("tiny-llama");
  const int layers = llama.products / 4;
  EXPECT_EQ(llama.products, 4 * layers + 1);
  EXPECT_EQ(llama.early, 3 * layers);
  const Counted gpt2 = products_of("tiny-gpt2");
  EXPECT_EQ(gpt2.early, gpt2.products - 1) << "each has a bias but the head";
}

// RoPE's tables, lengths and biases are there before a step begins; a residual isn't.
TEST(EarlyEpilogue, KnowsWhatNoKernelOfAStepWrites) {
  const Counted llama = products_of("tiny-llama");
  EXPECT_EQ(llama.steady, (llama.products - 1) / 4) << "q, k and v";
  const Counted gpt2 = products_of("tiny-gpt2");
  EXPECT_EQ(gpt2.steady, (gpt2.products - 1) / 4 * 2) << "q, k and v, and the wider one";
}

// A buffer that the epilogue writes may not be read ahead of that.
TEST(EarlyEpilogue, ReadsNothingThatItWrites) {
  Graph graph = test::fused_graph(
      test::model_graph("tiny-gpt2", DType::kBF16, LogitsOf::kLastPosition, DType::kBF16),
      TileLayout::kRows);
  const auto plan = make_step_plan(std::make_shared<const Graph>(std::move(graph)),
                                   {.batch = 1, .q_len = 1, .kv_len = {}, .capacity = 64}, true,
                                   TileLayout::kRows);
  ASSERT_TRUE(plan);
  bool tried = false;
  for (PlannedKernel planned : plan->kernels) {
    const auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
    if (product == nullptr || product->epilogues.size() != 1) continue;
    const std::string text = early_epilogue_text(planned.kernel, *product);
    if (text.find("READS_EARLY = 1") == std::string::npos) continue;
    tried = true;
    for (ir::BufferId id = 0; id < planned.kernel.bound_buffers; ++id) {
      planned.kernel.buffers[id].writable = true;
    }
    EXPECT_NE(early_epilogue_text(planned.kernel, *product).find("READS_EARLY = 0"),
              std::string::npos);
  }
  EXPECT_TRUE(tried);
}

}  // namespace
}  // namespace assay::engine
