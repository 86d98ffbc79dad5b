// Which values of real graphs are narrow, and how their products of many rows are cut.
#include "engine/device/cuda/many_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/passes/test_models.h"

namespace assay::engine::cuda {
namespace {

using testing::ElementsAre;

StepPlan plan_of(const std::string& architecture, DType weights, bool fused,
                 const Specialization& dims) {
  engine::Graph graph = test::model_graph(architecture, weights, LogitsOf::kLastPosition, weights);
  if (fused) graph = test::fused_graph(std::move(graph), TileLayout::kRows);
  auto plan = make_step_plan(std::make_shared<const engine::Graph>(std::move(graph)), dims, true,
                             TileLayout::kRows);
  EXPECT_TRUE(plan) << plan.error().message;
  narrow_values(*plan, !fused);
  return *std::move(plan);
}

constexpr Specialization kPrompt{.batch = 1, .q_len = 64, .kv_len = 64, .capacity = 100};

// The types of what the kernels up to the head write in the arena, and how each product of a layer
// is cut: P a prologue, E an epilogue, + an addend, b a bias, = none of these behind it.
struct Layer {
  std::vector<DType> written;
  std::vector<std::string> products;
};

Layer first_layer(const StepPlan& plan, size_t kernels) {
  Layer layer;
  for (size_t i = 0; i < kernels; ++i) {
    const PlannedKernel& planned = plan.kernels[i];
    for (size_t b = 0; b < planned.bindings.size(); ++b) {
      if (std::holds_alternative<ArenaBinding>(planned.bindings[b]) &&
          planned.kernel.buffers[b].writable) {
        layer.written.push_back(planned.kernel.buffers[b].dtype);
      }
    }
    const auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
    if (product == nullptr) continue;
    const LibraryProduct parts = library_product(planned.kernel, *product);
    std::string text = parts.prologue ? "P" : "";
    if (!parts.direct) text += "E";
    if (parts.direct && parts.direct->bias) text += "b";
    if (parts.direct && parts.direct->addend) text += "+";
    if (parts.direct && !parts.direct->bias && !parts.direct->addend) text += "=";
    layer.products.push_back(text);
  }
  return layer;
}

// Embedding, q k v, attention, output, gate and up, down.
TEST(ManyRows, OfALlamaLayerInBf16) {
  const Layer layer = first_layer(plan_of("llama3.2-1b", DType::kBF16, true, kPrompt), 6);
  EXPECT_THAT(layer.written, ElementsAre(DType::kF32, DType::kF32, DType::kBF16, DType::kF32,
                                         DType::kBF16, DType::kF32));
  EXPECT_THAT(layer.products, ElementsAre("PE", "+", "PE", "+"));
}

TEST(ManyRows, OfAGpt2LayerInFp32) {
  const Layer layer = first_layer(plan_of("gpt2-100m", DType::kF32, true, kPrompt), 6);
  EXPECT_THAT(layer.written, testing::Each(DType::kF32));
  EXPECT_THAT(layer.products, ElementsAre("PE", "b+", "PE", "b+"));
}

TEST(ManyRows, ABiasOfAnotherTypeIsNotTheLibrarys) {
  const Layer layer = first_layer(plan_of("gpt2-100m", DType::kF16, true, kPrompt), 6);
  EXPECT_THAT(layer.products, ElementsAre("PE", "E", "PE", "E"));
}

TEST(ManyRows, AStepOfDecodingKeepsFp32) {
  const StepPlan plan = plan_of("llama3.2-1b", DType::kBF16, true,
                                {.batch = 1, .q_len = 1, .kv_len = std::nullopt, .capacity = 100});
  EXPECT_THAT(first_layer(plan, 6).written, testing::Each(DType::kF32));
}

// Unfused, a norm's output is read by products alone; an attention's may be of a few queries.
TEST(ManyRows, OfAnUnfusedGraph) {
  const StepPlan plan = plan_of("llama3.2-1b", DType::kBF16, false, {});
  std::map<std::string, std::map<DType, int>> written;
  for (const PlannedKernel& planned : plan.kernels) {
    for (size_t b = 0; b < planned.bindings.size(); ++b) {
      if (std::holds_alternative<ArenaBinding>(planned.bindings[b]) &&
          planned.kernel.buffers[b].writable) {
        ++written[planned.kernel.label][planned.kernel.buffers[b].dtype];
      }
    }
  }
  EXPECT_EQ(written["rms_norm"][DType::kBF16], 32);
  EXPECT_EQ(written["rms_norm"][DType::kF32], 1) << "its last rows go on";
  EXPECT_EQ(written["last_rows"][DType::kBF16], 1);
  EXPECT_EQ(written["multiply"][DType::kBF16], 16);
  EXPECT_EQ(written["attention"][DType::kF32], 16);
  EXPECT_EQ(written["add"][DType::kF32], 32);
}

}  // namespace
}  // namespace assay::engine::cuda
