// Which products of many rows with weights in blocks are multiplied by tiles, and by how many
// blocks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/block_cells.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"

namespace assay::engine {
namespace {

struct Of {
  int64_t inputs, outputs;
};
constexpr Of kGateUpOf8B{4096, 28'672}, kDownOf8B{14'336, 4096}, kOutputOf1B{2048, 2048};

// x . w^T of a prompt, x computed by another node, in the weight's type, as in prompts.
Kernel product_kernel(Of of, WeightFormat format, int64_t rows, const int32_t* order = nullptr) {
  GraphBuilder::MixedWeights weights{
      {{"table", Shape{1, of.inputs}}, {"w.weight", Shape{of.outputs, of.inputs}, format}}};
  weights.specs.back().input_order = order;
  GraphBuilder builder(weights, DType::kF32, false, false);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto graph = builder.finish({builder.linear(x, "w", false, WeightLayout::kOutIn)});
  EXPECT_TRUE(graph);
  auto kernel = lower(*graph, graph->nodes.back(),
                      {.batch = 1, .q_len = rows, .kv_len = {}, .capacity = {}}, TileLayout::kRows);
  EXPECT_TRUE(kernel);
  kernel->target = "sm_90a";
  auto& product = std::get<ProductKernel>(kernel->body);
  kernel->buffers[product.x].dtype = kernel->buffers[product.weight].dtype;
  return std::move(kernel).value();
}

CudaProductShape shape_of(const Kernel& kernel) {
  return cuda_product_shape(kernel, std::get<ProductKernel>(kernel.body));
}
bool is_tiles(const Kernel& kernel) {
  return shape_of(kernel).form == CudaProductForm::kTiles;
}

TEST(CudaTiles, FitEveryFormatOfIntegers) {
  for (const FormatTraits& t : kFormats) {
    if (!t.in_blocks()) continue;
    for (const int64_t rows : {33, 64, 160, 512, 1024}) {
      SCOPED_TRACE(fmt::format("{} {}", t.name, rows));
      const Kernel kernel = product_kernel(kGateUpOf8B, t.format, rows);
      ASSERT_EQ(is_tiles(kernel), !block_parts(t.format).is_float);
      if (block_parts(t.format).is_float) continue;
      const auto& product = std::get<ProductKernel>(kernel.body);
      const CudaProductShape shape = shape_of(kernel);
      EXPECT_LE(shape.shared_bytes, 227 * 1024);
      EXPECT_GE(shape.laps, 3) << "stages: one is multiplied, one is full, one is asked for";
      EXPECT_EQ(shape.rows % 32, 0);
      EXPECT_LE(shape.rows, 128);
      EXPECT_FALSE(may_have_many_rows(kernel, product));
      const int64_t blocks = cuda_tile_blocks(shape, product, rows);
      EXPECT_LE(blocks, kCudaMultiprocessors);
      EXPECT_GT(blocks, kCudaMultiprocessors * 3 / 4);
    }
  }
}

// Parts of tiles would need more time than a decoded weight, or the library's product is better.
TEST(CudaTiles, AreLeftToTheLibraryWhereThatTakesLessTime) {
  constexpr auto kFormat = WeightFormat::kQ4_K;
  EXPECT_TRUE(is_tiles(product_kernel(kDownOf8B, kFormat, 512)));
  EXPECT_FALSE(is_tiles(product_kernel(kOutputOf1B, kFormat, 512)));
  EXPECT_FALSE(is_tiles(product_kernel(kDownOf8B, kFormat, 1025)));
  Kernel kernel = product_kernel(kOutputOf1B, kFormat, 512);
  std::get<ProductKernel>(kernel.body).by_itself = true;
  EXPECT_TRUE(is_tiles(kernel));
}

TEST(CudaTiles, NeedHopperAndInputsInTheirOrder) {
  const std::vector<int32_t> order(4096);
  EXPECT_FALSE(is_tiles(product_kernel(kGateUpOf8B, WeightFormat::kInt4_G128, 512, order.data())));
  Kernel kernel = product_kernel(kGateUpOf8B, WeightFormat::kQ8_0, 512);
  for (const char* target : {"sm_80", "sm_89", "sm_100a"}) {
    kernel.target = target;
    EXPECT_FALSE(is_tiles(kernel)) << target;
  }
}

// Equal parts of each tile, or shares that begin anywhere.
TEST(CudaTiles, BlocksShareAllOfThem) {
  const auto blocks = [](Of of, int64_t rows) {
    const Kernel kernel = product_kernel(of, WeightFormat::kQ4_K, rows);
    return cuda_tile_blocks(shape_of(kernel), std::get<ProductKernel>(kernel.body), rows);
  };
  EXPECT_EQ(blocks(kDownOf8B, 512), 128) << "64 tiles, two blocks each";
  EXPECT_EQ(blocks(kGateUpOf8B, 512), kCudaMultiprocessors) << "448 tiles";
}

}  // namespace
}  // namespace assay::engine
