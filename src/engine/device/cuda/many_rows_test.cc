// Which values of real graphs are narrow, and how their products of many rows are cut.
#include "engine/device/cuda/many_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/codegen/cuda/fp8_product.h"
#include "engine/device/cuda/fake_gpu.h"
#include "engine/passes/test_models.h"

namespace assay::engine::cuda {
namespace {

using testing::ElementsAre;

StepPlan plan_of(const std::string& architecture, DType weights, bool fused,
                 const Specialization& dims, Fp8 fp8 = Fp8::kNone,
                 LogitsOf logits = LogitsOf::kLastPosition) {
  engine::Graph graph = test::model_graph(architecture, weights, logits, weights, fp8);
  if (fused) graph = test::fused_graph(std::move(graph), TileLayout::kRows);
  auto plan = make_step_plan(std::make_shared<const engine::Graph>(std::move(graph)), dims, true,
                             TileLayout::kRows);
  EXPECT_TRUE(plan) << plan.error().message;
  narrow_values(*plan, !fused);
  pair_codes(*plan);
  return *std::move(plan);
}

constexpr Specialization kPrompt{.batch = 1, .q_len = 64, .kv_len = 64, .capacity = 100};

// The types of what the kernels up to the head write in the arena, and how each product of a layer
// is cut: 8 in fp8, P a prologue, E an epilogue, c one that may write codes, + an addend, b a bias,
// = none of these behind it.
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
    std::string text = parts.fp8 ? "8" : "";
    if (parts.prologue) text += "P";
    if (!parts.direct) text += "E";
    if (product->codes_output) text += "c";
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
  EXPECT_THAT(layer.written, ElementsAre(DType::kF32, DType::kBF16, DType::kBF16, DType::kF32,
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

// The kernel behind gate and up rounds its rows for down; attention's are rounded by a kernel of
// their own.
TEST(ManyRows, OfALlamaLayerInFp8) {
  const Layer layer =
      first_layer(plan_of("llama3.2-1b", DType::kBF16, true, kPrompt, Fp8::kLayers), 6);
  EXPECT_THAT(layer.written, ElementsAre(DType::kF32, DType::kBF16, DType::kBF16, DType::kF32,
                                         DType::kBF16, DType::kF32));
  EXPECT_THAT(layer.products, ElementsAre("8PE", "8P+", "8PEc", "8P+"));
}

// Gate and up write rows as down's tiles read them.
TEST(ManyRows, TilesOfALlamaLayerArePaired) {
  StepPlan plan = plan_of("llama3.2-1b", DType::kBF16, true, kPrompt);
  std::vector<ProductKernel*> products;
  for (PlannedKernel& planned : plan.kernels) {
    planned.kernel.target = "sm_90a";
    auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
    if (product == nullptr) continue;
    planned.kernel.buffers[product->weight].blocks = {.format = WeightFormat::kQ4_K};
    product->by_itself = true;
    if (products.size() < 4) products.push_back(product);
  }
  const auto paired = [&] {
    pair_tiles(plan);
    std::string text;
    for (const ProductKernel* product : products) {
      text += product->tiled_output ? 'o' : product->tiled_input ? 'i' : '-';
    }
    return text;
  };
  EXPECT_EQ(paired(), "--oi");
  for (PlannedKernel& planned : plan.kernels) planned.kernel.target = "sm_80";
  EXPECT_EQ(paired(), "----");
}

// A bias is the epilogue's.
TEST(ManyRows, OfAGpt2LayerInFp8) {
  const Layer layer =
      first_layer(plan_of("gpt2-100m", DType::kBF16, true, kPrompt, Fp8::kLayers), 6);
  EXPECT_THAT(layer.products, ElementsAre("8PE", "8PE", "8PEc", "8PE"));
}

TEST(ManyRows, AStepOfDecodingHasNothingInFp8) {
  const StepPlan plan =
      plan_of("llama3.2-1b", DType::kBF16, true,
              {.batch = 1, .q_len = 1, .kv_len = std::nullopt, .capacity = 100}, Fp8::kWithTheHead);
  EXPECT_THAT(first_layer(plan, 6).products, ElementsAre("PE", "P+", "PE", "P+"));
}

// Products of the last rows of a prompt are few: the last layer's behind attention, and the head.
TEST(ManyRows, OfThePromptsLastRowsNothingIsInFp8) {
  const auto count = [](LogitsOf logits, Fp8 fp8) {
    const StepPlan plan = plan_of("llama3.2-1b", DType::kBF16, true, kPrompt, fp8, logits);
    int64_t found = 0;
    for (const PlannedKernel& planned : plan.kernels) {
      const auto* product = std::get_if<ProductKernel>(&planned.kernel.body);
      if (product != nullptr) found += multiplies_fp8(planned.kernel, *product) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count(LogitsOf::kLastPosition, Fp8::kWithTheHead), 15 * 4 + 1);
  EXPECT_EQ(count(LogitsOf::kAllPositions, Fp8::kLayers), 16 * 4);
  EXPECT_EQ(count(LogitsOf::kAllPositions, Fp8::kWithTheHead), 16 * 4 + 1);
}

TEST(ManyRows, SizesThatNoRowOfCodesHasAreNamed) {
  Kernel kernel;
  kernel.buffers.push_back({"weight", DType::kBF16});
  ProductKernel product;
  product.fp8 = true;
  product.rows = Dim::batch() * Dim::q_len();
  product.inputs = 100;
  product.packing.segments = {64};
  EXPECT_EQ(why_not_fp8(kernel, product),
            "expected multiples of 16 inputs and outputs, found 100 and 64");
  product.inputs = 96;
  EXPECT_EQ(why_not_fp8(kernel, product), std::nullopt);
  kernel.buffers[0].blocks = {WeightFormat::kQ8_0, 96};
  EXPECT_EQ(why_not_fp8(kernel, product), "a weight of other than 16 bits or e4m3");
}

// A prompt of so many tokens, all weights in blocks.
StepPlan plan_in_blocks(const std::string& architecture, int64_t q_len) {
  StepPlan plan = plan_of(architecture, DType::kBF16, true,
                          {.batch = 1, .q_len = q_len, .kv_len = q_len, .capacity = 2 * q_len});
  for (PlannedKernel& planned : plan.kernels) {
    if (const auto* product = std::get_if<ProductKernel>(&planned.kernel.body)) {
      planned.kernel.buffers[product->weight].blocks = {WeightFormat::kQ8_0, product->inputs};
    }
  }
  return plan;
}

// Gate and up, decoded to bf16, are the widest. A step with such memory of its own would take it
// again.
TEST(ManyRows, StepsShareTheMemoryOfADecodedWeight) {
  const FakeCuda fake;
  for (const auto& [architecture, decoded_bytes] :
       {std::pair<std::string, size_t>{"llama3.2-1b", 2UL * 2 * 8192 * 2048},
        std::pair<std::string, size_t>{"llama3.1-8b", 2UL * 2 * 14336 * 4096}}) {
    SCOPED_TRACE(architecture);
    auto driver = Driver::open();
    ASSERT_TRUE(driver) << driver.error().message;
    std::vector<std::string> notes;
    LazyCublasLt library(**driver, notes);
    ManyRows one(**driver, library), other(**driver, library);
    const auto takes = [&](ManyRows& step, int64_t q_len) {
      const size_t free = (*driver)->memory()->free;
      const auto moved = step.reserve(plan_in_blocks(architecture, q_len), {1, q_len, q_len});
      EXPECT_TRUE(moved && *moved);
      return free - (*driver)->memory()->free;
    };
    ASSERT_NE(library.get(), nullptr);  // which has memory of its own
    EXPECT_GE(takes(one, 64), decoded_bytes);
    EXPECT_LT(takes(other, 512), decoded_bytes);
    EXPECT_EQ(one.decoded(0), other.decoded(0));
    // Some products of a Hopper GPU are its own, of some sizes: recordings of others keep the
    // places.
    ManyRows of_tiles(**driver, library);
    for (const int64_t q_len : {200, 40}) {
      StepPlan plan = plan_in_blocks(architecture, q_len);
      for (PlannedKernel& planned : plan.kernels) planned.kernel.target = "sm_90a";
      const auto moved = of_tiles.reserve(plan, {1, q_len, q_len});
      EXPECT_EQ(moved && *moved, q_len == 200) << q_len;
    }
    EXPECT_GE(one.decoded(1), one.decoded(0) + decoded_bytes);
  }
}

TEST(ManyRows, AStepKeepsTheMemoryThatItWasRecordedWith) {
  FakeCuda fake;
  auto driver = Driver::open();
  ASSERT_TRUE(driver) << driver.error().message;
  const int live = fake.live();
  DecodedWeight weight(**driver);
  auto small = weight.room(1000), same = weight.room(10);
  ASSERT_TRUE(small && same);
  EXPECT_EQ(*small, *same);
  auto large = weight.room(2000);
  ASSERT_TRUE(large);
  EXPECT_NE(*large, *small);
  EXPECT_EQ((*small)->size_bytes(), 1000);
  EXPECT_EQ(fake.live(), live + 2);
  small = weight.room(1000), same = weight.room(1000);
  EXPECT_EQ(*small, *large);
  EXPECT_EQ(fake.live(), live + 1) << "nobody has the small one any more";
  small->reset(), same->reset(), large->reset();
  EXPECT_EQ(fake.live(), live);
  fake.reset(1, kOutOfMemory);
  EXPECT_FALSE(weight.room(1000));
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
