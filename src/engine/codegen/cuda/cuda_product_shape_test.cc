// The form of each product, and that its threads and blocks cover it.
#include "engine/codegen/cuda/cuda_product_shape.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"

namespace assay::engine {
namespace {

constexpr int64_t kOutputs = 4096;

// x . w^T, x computed by another node.
Kernel product_kernel(int64_t inputs, DType dtype, std::optional<int64_t> rows,
                      int64_t outputs = kOutputs) {
  GraphBuilder builder({{"table", Shape{1, inputs}}, {"w.weight", Shape{outputs, inputs}}}, dtype);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto graph = builder.finish({builder.linear(x, "w", false, WeightLayout::kOutIn)});
  EXPECT_TRUE(graph);
  Specialization dims;
  if (rows) dims = {.batch = *rows, .q_len = 1, .kv_len = {}, .capacity = {}};
  auto kernel = lower(*graph, graph->nodes.back(), dims, TileLayout::kRows);
  EXPECT_TRUE(kernel);
  return std::move(kernel).value();
}

CudaProductShape shape_of(int64_t inputs, DType dtype, std::optional<int64_t> rows,
                          int64_t outputs = kOutputs) {
  const Kernel kernel = product_kernel(inputs, dtype, rows, outputs);
  return cuda_product_shape(kernel, std::get<ProductKernel>(kernel.body));
}

TEST(CudaProductShapes, FormsGoByRowsAndTypes) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    EXPECT_EQ(shape_of(8192, dtype, 1).form, CudaProductForm::kHeld);
    EXPECT_EQ(shape_of(18'944, dtype, 1).form, CudaProductForm::kHeld);
    for (const int64_t rows : {2, 3, 8}) {
      EXPECT_EQ(shape_of(2048, dtype, rows).form, CudaProductForm::kTensor) << rows;
    }
    for (const int64_t rows : {9, 16}) {
      const CudaProductShape shape = shape_of(2048, dtype, rows);
      EXPECT_EQ(shape.form, CudaProductForm::kTensor) << rows;
      EXPECT_EQ(shape.rows, (rows + 7) / 8 * 8);
    }
    EXPECT_EQ(shape_of(2048, dtype, 17).form, CudaProductForm::kHeld) << "the library's";
    EXPECT_EQ(shape_of(2048, dtype, std::nullopt).form, CudaProductForm::kHeld);
  }
  EXPECT_EQ(shape_of(4864, DType::kF32, 1).form, CudaProductForm::kHeld);
  EXPECT_EQ(shape_of(2048, DType::kF32, 8).form, CudaProductForm::kHeld);
}

// x . norm(w): the norm's factor comes behind the product.
TEST(CudaProductShapes, NoNormBeforeHalfPrecisionOnTensorCores) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Kernel kernel = product_kernel(2048, dtype, 4);
    auto& product = std::get<ProductKernel>(kernel.body);
    product.norm.emplace();
    EXPECT_EQ(cuda_product_shape(kernel, product).form,
              dtype == DType::kF16 ? CudaProductForm::kHeld : CudaProductForm::kTensor);
  }
}

// A product whose columns alternate between two segments of `width`, more than a library's product
// does, of a step or a prompt of so many rows.
CudaProductShape gated_shape_of(int64_t width, DType dtype, int64_t rows, const char* target,
                                bool prompt = false) {
  Kernel kernel = product_kernel(2048, dtype, rows);
  if (prompt) kernel.dims = {.batch = 1, .q_len = rows, .kv_len = rows, .capacity = {}};
  if (prompt) std::get<ProductKernel>(kernel.body).rows = Dim::batch() * Dim::q_len();
  auto& product = std::get<ProductKernel>(kernel.body);
  product.packing.segments = {width, width};
  product.packing.interleaved = true;
  kernel.target = target;
  return cuda_product_shape(kernel, product);
}

TEST(CudaProductShapes, WarpgroupsMultiplyWhatALibraryCantFinish) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int64_t rows : {17, 24, 32, 33, 64}) {
      const CudaProductShape shape = gated_shape_of(8192, dtype, rows, "sm_90a");
      ASSERT_EQ(shape.form, CudaProductForm::kWarpgroups) << rows;
      EXPECT_EQ(shape.rows, 64);
      EXPECT_EQ(shape.blocks * shape.columns, 2 * 8192);
      EXPECT_EQ(shape.splits, 1);
      EXPECT_GE(shape.laps, 4) << "stages in flight";
      EXPECT_LE(shape.shared_bytes, 227 * 1024);
      EXPECT_EQ(gated_shape_of(8192, dtype, rows, "sm_89").form, CudaProductForm::kHeld);
    }
    EXPECT_EQ(gated_shape_of(8192, dtype, 16, "sm_90a").form, CudaProductForm::kTensor);
  }
  EXPECT_EQ(gated_shape_of(8192, DType::kF32, 32, "sm_90a").form, CudaProductForm::kHeld);
}

// Output and down of llama3.2-1b, which a library would end by itself, as an H200 was fastest.
TEST(CudaProductShapes, PartsOfTheInputsFillTheGpu) {
  struct Expected {
    int64_t inputs, rows, splits, tile_rows, tile_columns;
  };
  for (const Expected& expected : {Expected{2048, 32, 2, 64, 64},
                                   {2048, 128, 2, 64, 64},
                                   {8192, 32, 4, 64, 72},
                                   {8192, 128, 4, 128, 72}}) {
    SCOPED_TRACE(fmt::format("{} inputs, {} rows", expected.inputs, expected.rows));
    Kernel kernel = product_kernel(expected.inputs, DType::kBF16, expected.rows, 2048);
    kernel.target = "sm_90a";
    const auto shape = cuda_product_shape(kernel, std::get<ProductKernel>(kernel.body));
    ASSERT_EQ(shape.form, CudaProductForm::kWarpgroups);
    EXPECT_EQ(shape.splits, expected.splits);
    EXPECT_EQ(shape.rows, expected.tile_rows);
    EXPECT_EQ(shape.columns, expected.tile_columns);
    EXPECT_EQ(shape.blocks, (2048 + shape.columns - 1) / shape.columns);
    EXPECT_EQ(shape.round, shape.columns) << "all columns of a tile meet";
    EXPECT_LE(shape.shared_bytes, 227 * 1024);
    kernel.target = "sm_90";
    EXPECT_TRUE(cuda_form(kernel).library) << "without warpgroups";
  }
  for (const auto& [inputs, rows] : {std::pair(2048, 256), {8192, 256}, {2048, 2048}}) {
    Kernel kernel = product_kernel(inputs, DType::kBF16, rows, 2048);
    kernel.target = "sm_90a";
    EXPECT_TRUE(cuda_form(kernel).library) << rows << " rows: it has tiles enough";
  }
}

// An arm in fp8 has to beat these, too.
TEST(CudaProductShapes, ALibrarysTimeIsWorthLessWhereWarpgroupsAreFaster) {
  struct Expected {
    int64_t inputs, rows;
    bool less;
  };
  for (const Expected& expected :
       {Expected{2048, 32, true}, {8192, 128, true}, {2048, 2048, false}, {2048, 8, false}}) {
    SCOPED_TRACE(fmt::format("{} inputs, {} rows", expected.inputs, expected.rows));
    Kernel kernel = product_kernel(expected.inputs, DType::kBF16, expected.rows, 2048);
    const auto us = [&] {
      return cuda_beside_library_us(kernel, std::get<ProductKernel>(kernel.body), expected.rows,
                                    10);
    };
    kernel.target = "sm_90a";
    EXPECT_GT(us(), 4);
    EXPECT_EQ(us() < 10, expected.less);
    kernel.target = "sm_90";
    EXPECT_EQ(us(), 10);
  }
}

// Rows and columns of the tiles of llama3.2-1b's gate and up, as an H200 was fastest.
TEST(CudaProductShapes, TilesOfPromptsFillTheGpu) {
  struct Expected {
    int64_t rows, tile_rows, tile_columns;
  };
  for (const Expected& expected : {Expected{64, 64, 128}, {128, 128, 128}, {512, 128, 256}}) {
    SCOPED_TRACE(expected.rows);
    const auto shape = gated_shape_of(8192, DType::kBF16, expected.rows, "sm_90a", true);
    ASSERT_EQ(shape.form, CudaProductForm::kWarpgroups);
    EXPECT_EQ(shape.rows, expected.tile_rows);
    EXPECT_EQ(shape.columns, expected.tile_columns);
    EXPECT_GE(shape.laps, 4) << "stages in flight";
    EXPECT_LE(shape.shared_bytes, 227 * 1024);
    const auto before = gated_shape_of(8192, DType::kBF16, expected.rows, "sm_90", true);
    EXPECT_EQ(before.form, CudaProductForm::kHeld) << "and a library, without warpgroups";
  }
  // Columns of llama3.1-8b make 3.9 rounds of 224, and 3.4 of 256.
  EXPECT_EQ(gated_shape_of(14336, DType::kBF16, 512, "sm_90a", true).columns, 224);
  // Tiles of 300 rows would fill little more than half of two rounds.
  const auto uneven = gated_shape_of(8192, DType::kBF16, 300, "sm_90a", true);
  EXPECT_EQ(uneven.form, CudaProductForm::kHeld) << "and a library";
  // Tiles of the same columns would read more rows than the cache keeps.
  EXPECT_EQ(gated_shape_of(8192, DType::kBF16, 4096, "sm_90a", true).columns, 256);
  EXPECT_EQ(gated_shape_of(8192, DType::kBF16, 8192, "sm_90a", true).form, CudaProductForm::kHeld);
  // Rotary pairs end slowly in wide tiles.
  Kernel heads = product_kernel(2048, DType::kBF16, 4096, 3072);
  auto& product = std::get<ProductKernel>(heads.body);
  product.packing.segments = {2048, 512, 512};
  product.packing.half_head = 32;
  heads.target = "sm_90a";
  EXPECT_EQ(cuda_product_shape(heads, product).form, CudaProductForm::kHeld);
  // A prompt's rows are as good as a step's.
  EXPECT_EQ(gated_shape_of(8192, DType::kBF16, 24, "sm_90a", true),
            gated_shape_of(8192, DType::kBF16, 24, "sm_90a"));
}

// A size that became a symbol chooses as if it were a constant.
TEST(CudaProductShapes, ARunsSizesChooseWhereTheyArentConstants) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t rows : {1, 2, 3, 8, 9, 16, 17, 100}) {
      Kernel symbolic = product_kernel(2048, dtype, std::nullopt);
      symbolic.run_sizes = {.batch = rows, .q_len = 1, .kv_len = {}, .capacity = {}};
      symbolic.dims.q_len = 1;
      EXPECT_EQ(cuda_form(symbolic), cuda_form(product_kernel(2048, dtype, rows))) << rows;
    }
  }
}

// A prompt's products of more than eight rows are the library's, but for those of its last rows.
TEST(CudaProductShapes, PromptsOfManyRowsAreTheLibrarys) {
  Kernel prompt = product_kernel(2048, DType::kBF16, std::nullopt);
  prompt.dims = {.batch = 2, .q_len = 6, .kv_len = 6, .capacity = {}};
  EXPECT_TRUE(cuda_form(prompt).library);
  EXPECT_FALSE(cuda_form(product_kernel(2048, DType::kBF16, 12)).library);
  EXPECT_TRUE(cuda_form(product_kernel(2048, DType::kBF16, 17)).library);
  EXPECT_TRUE(cuda_form(product_kernel(2048, DType::kF32, 12)).library);
}

TEST(CudaProductShapes, ThreadsCoverTheInputsWithFewIdle) {
  for (const int64_t inputs :
       {16, 768, 896, 1536, 2048, 3072, 4096, 4864, 8192, 8960, 11008, 14336, 18944}) {
    const CudaProductShape one = shape_of(inputs, DType::kBF16, 1);
    EXPECT_GE(one.threads * one.pieces * 8, inputs);
    EXPECT_LE(one.columns * one.pieces, 16) << inputs << ": more than a thread has registers for";
    if (inputs > 8192) {
      EXPECT_LE(one.threads * one.pieces * 8, inputs * 8 / 7) << inputs;
    }
    EXPECT_GE(kCudaRegisters / (one.together * one.threads), 4 * one.columns * one.pieces + 48)
        << inputs << ": registers of a thread, beside those of its weights";
    const CudaProductShape few = shape_of(inputs, DType::kBF16, 8);
    EXPECT_LE(few.shared_bytes, 99 * 1024 - 1024) << inputs;
    EXPECT_GE(few.laps, 1) << inputs;
    for (const int64_t rows : {16}) {
      const CudaProductShape more = shape_of(inputs, DType::kBF16, rows);
      EXPECT_LE(more.shared_bytes, 98 * 1024);
      EXPECT_GE(more.splits * (more.threads / 32) * more.pieces * kCudaTensorRun, inputs);
      EXPECT_GE(more.laps, 1);
    }
    const int64_t units = few.threads / 32 * few.pieces;
    EXPECT_EQ(few.shared_bytes,
              few.laps * units * 16 * kCudaTensorRun * 2 + cuda_tensor_parts_bytes(few))
        << inputs;
    EXPECT_GE(few.splits * units * kCudaTensorRun, inputs);
    EXPECT_EQ(few.splits, (inputs + 2047) / 2048) << inputs;
    EXPECT_LE(few.threads * few.pieces, 1024) << inputs << ": more than registers hold of x";
    EXPECT_LE(few.splits * few.blocks, 132);
    EXPECT_GE(few.splits * few.blocks, 118) << inputs << ": multiprocessors without work";
  }
}

// A GPU has room for all blocks of one row's product at once, where few turns are enough for that.
TEST(CudaProductShapes, OneRowsBlocksTakeTurns) {
  for (const int64_t outputs : {8192, 9728, 16'384}) {
    for (const int64_t inputs : {896, 1536, 2048}) {
      const CudaProductShape shape = shape_of(inputs, DType::kBF16, 1, outputs);
      EXPECT_GT(shape.turns, 1) << inputs << ", " << outputs;
      EXPECT_LE(shape.blocks, shape.together * kCudaMultiprocessors);
      EXPECT_GE(shape.blocks * shape.turns * shape.columns, outputs);
      EXPECT_LT((shape.blocks - 1) * shape.turns * shape.columns, outputs);
    }
  }
  EXPECT_EQ(shape_of(2048, DType::kBF16, 1, 2048).turns, 1) << "all fit without";
  EXPECT_EQ(shape_of(2048, DType::kBF16, 1, 128'256).turns, 1) << "too many";
  EXPECT_EQ(shape_of(2048, DType::kBF16, std::nullopt, 16'384).turns, 1) << "rows come one by one";
  EXPECT_EQ(shape_of(2048, DType::kBF16, 4, 16'384).turns, 1);
  EXPECT_EQ(shape_of(2048, DType::kF32, 1, 16'384).turns, 1);
}

// Blocks bring a part of the weights nearer that they ask for when they have multiplied their first
// ones. These are products of models that an H200 was faster with.
TEST(CudaProductShapes, IdleMemoryBringsTheNextWeightsNearer) {
  const auto near_of = [](int64_t inputs, int64_t outputs, int64_t rows,
                          const char* target = "sm_90a") {
    Kernel kernel = product_kernel(inputs, DType::kBF16, rows, outputs);
    kernel.target = target;
    return cuda_product_shape(kernel, std::get<ProductKernel>(kernel.body));
  };
  for (const auto& [inputs, outputs] : {std::pair(896, 9728), {1536, 17'920}, {2048, 16'384}}) {
    SCOPED_TRACE(inputs);
    const CudaProductShape one = near_of(inputs, outputs, 1);
    EXPECT_GT(one.near_bytes * one.blocks, 15 << 17);
    EXPECT_LE(one.near_bytes * one.blocks, 2 << 20);
    EXPECT_EQ(near_of(inputs, outputs, 1, "sm_90").near_bytes, 0);
    EXPECT_EQ(near_of(inputs, outputs, 12).near_bytes, 0);
  }
  for (const auto& [inputs, outputs] : {std::pair(1536, 17'920), {2048, 16'384}, {896, 151'936}}) {
    const CudaProductShape few = near_of(inputs, outputs, 8);
    EXPECT_GT(few.near_bytes * few.blocks, 31 << 17);
    EXPECT_LE(few.near_bytes * few.blocks, 4 << 20);
  }
  EXPECT_EQ(near_of(896, 9728, 8).near_bytes, 0) << "the ring has room for all columns";
  const int64_t turn_bytes = 8 * 64 * 2;
  EXPECT_EQ(near_of(64, 5400, 1).near_bytes, turn_bytes) << "no more than there is";
  const CudaProductShape ends_soon = near_of(896, 12'000, 3);
  EXPECT_EQ(ends_soon.near_bytes, (6 - ends_soon.laps) * 16 * 896 * 2) << "likewise";
  EXPECT_EQ(near_of(3072, 16'384, 1).near_bytes, 0) << "slower with it";
  EXPECT_EQ(near_of(2048, 3072, 1).near_bytes, 0) << "one turn";
  EXPECT_EQ(near_of(4096, 28'672, 8).near_bytes, 0) << "columns are shared";
}

// The products of models that an H200 was measured with: down's, whose inputs are many, and others
// of few rounds of blocks.
TEST(CudaProductShapes, OneRowsBlocksFillTheRegisters) {
  const auto expect = [](int64_t inputs, int64_t outputs, int64_t threads, int64_t columns,
                         int64_t together, int64_t turns) {
    SCOPED_TRACE(fmt::format("{} {}", inputs, outputs));
    const CudaProductShape shape = shape_of(inputs, DType::kBF16, 1, outputs);
    EXPECT_EQ(shape.threads, threads);
    EXPECT_EQ(shape.columns, columns);
    EXPECT_EQ(shape.together, together);
    EXPECT_EQ(shape.turns, turns);
  };
  expect(8192, 2048, 256, 4, 2, 2);
  expect(8960, 1536, 384, 2, 2, 3);
  expect(4864, 896, 224, 4, 3, 1);
  expect(2048, 16'384, 128, 8, 4, 4);
  expect(2048, 3072, 128, 8, 4, 1);
  expect(2048, 2048, 128, 8, 3, 1);
}

// Integers leave half of a multiprocessor to the next kernel where they have few groups of columns;
// a block alone may have fewer registers than fit.
TEST(CudaProductShapes, OneRowOfBlocksLeavesRoomForTheNextKernel) {
  const auto of_blocks = [](WeightFormat format, int64_t inputs, int64_t outputs) {
    Kernel kernel = product_kernel(inputs, DType::kBF16, 1, outputs);
    kernel.target = "sm_90a";
    auto& product = std::get<ProductKernel>(kernel.body);
    kernel.buffers[product.weight].blocks = {format, inputs};
    return cuda_product_shape(kernel, product);
  };
  for (const WeightFormat format : {WeightFormat::kQ8_0, WeightFormat::kQ4_K}) {
    for (const int64_t inputs : {2048, 4096}) {
      const CudaProductShape shape = of_blocks(format, inputs, 4096);
      EXPECT_EQ(shape.pieces, 2);
      EXPECT_EQ(shape.threads / 32 * ceil_div(shape.blocks, kCudaMultiprocessors), 16) << inputs;
    }
    EXPECT_EQ(of_blocks(format, 8192, 2048).registers, 96);
    EXPECT_EQ(of_blocks(format, 2048, 2048).registers, 0);
  }
  EXPECT_EQ(of_blocks(WeightFormat::kQ4_K, 14'336, 4096).registers, 112) << "seven slots a warp";
  for (const int64_t outputs : {2048, 3072}) {  // with a group each; some blocks by themselves
    const CudaProductShape shape = of_blocks(WeightFormat::kFp8_G128, 2048, outputs);
    EXPECT_EQ(shape.threads, 256);
    EXPECT_EQ(shape.registers, 72);
  }
  EXPECT_EQ(of_blocks(WeightFormat::kFp8_G128, 8192, 2048).registers, 88);
  static_assert(256 * 72 + 512 * 88 <= kCudaRegisters);
  EXPECT_EQ(of_blocks(WeightFormat::kFp8_G128, 8192, 4096).registers, 96) << "of two turns";
  EXPECT_EQ(of_blocks(WeightFormat::kFp8_G128, 2048, 16'384).threads, 512);
  EXPECT_EQ(of_blocks(WeightFormat::kQ8_0, 2048, 16'384).laps, 3);
  EXPECT_EQ(of_blocks(WeightFormat::kQ4_K, 2048, 16'384).laps, 1);
  EXPECT_EQ(of_blocks(WeightFormat::kQ4_K, 4096, 6144).laps, 3) << "alone on its multiprocessor";
}

// Several rows beside all of a column's inputs at once would spill.
TEST(CudaProductShapes, SeveralRowsHaveFewerPiecesAtATime) {
  EXPECT_EQ(shape_of(2048, DType::kBF16, std::nullopt).pieces, 2);
  EXPECT_EQ(shape_of(4096, DType::kBF16, std::nullopt).pieces, 2);
  EXPECT_EQ(shape_of(4096, DType::kBF16, 1).pieces, 4);
  EXPECT_EQ(shape_of(8192, DType::kBF16, std::nullopt).pieces, 4) << "in two stages";
  EXPECT_EQ(shape_of(18944, DType::kF32, std::nullopt).threads, 256);
}

// Inputs that no registers hold come in stages.
TEST(CudaProductShapes, MoreInputsThanRegistersHold) {
  const CudaProductShape shape = shape_of(40'000, DType::kF32, 1);
  EXPECT_LE(shape.pieces, 16);
  EXPECT_GT(40'000, shape.threads * shape.pieces * 4);
}

// Each format, with few inputs and many, and columns for a turn of a block or more: a block asks
// for no more than there is, and all columns have one.
TEST(CudaProductShapes, WeightsInBlocksFitEachGpu) {
  for (const FormatTraits& t : kFormats) {
    if (!t.in_blocks()) continue;
    for (const int64_t inputs :
         {t.block_values, 9 * t.block_values, int64_t{8192}, int64_t{28672}}) {
      for (const auto& [rows, outputs] : std::vector<std::pair<int64_t, int64_t>>{{1, kOutputs},
                                                                                  {1, 4240},
                                                                                  {1, 16'384},
                                                                                  {1, 57'344},
                                                                                  {1, 128'256},
                                                                                  {8, kOutputs},
                                                                                  {12, kOutputs},
                                                                                  {27, kOutputs}}) {
        for (const std::string target : {"sm_80", "sm_89", "sm_90a"}) {
          SCOPED_TRACE(fmt::format("{} {} {} {} {}", t.name, inputs, outputs, rows, target));
          Kernel kernel = product_kernel(inputs, DType::kBF16, rows, outputs);
          kernel.target = target;
          auto& product = std::get<ProductKernel>(kernel.body);
          kernel.buffers[product.weight].blocks = {t.format, inputs};
          const CudaProductShape shape = cuda_product_shape(kernel, product);
          ASSERT_GT(shape.rows, 0);
          const bool one = shape.form == CudaProductForm::kOneRow;
          EXPECT_TRUE(rows == 1 || !one);
          const int64_t slots = CudaSlot::count(inputs);
          const int64_t own = one ? 16 * 33 * 4 + 128 : cuda_block_sums_bytes(shape);
          EXPECT_LE(own + shape.shared_bytes, (target == "sm_90a" ? 227 : 99) * 1024);
          EXPECT_GE(shape.threads / 32 * shape.pieces * shape.splits, slots);
          const int64_t columns = packed_columns(product.packing);
          if (one) {
            EXPECT_GE(shape.blocks * shape.turns * shape.columns, columns);
            EXPECT_LE(shape.laps, shape.turns);
            EXPECT_LE(
                shape.registers * shape.threads * ceil_div(shape.blocks, kCudaMultiprocessors),
                kCudaRegisters);
            const int64_t together = ceil_div(shape.blocks, kCudaMultiprocessors);
            EXPECT_TRUE(shape.registers > 0 || shape.together >= together);
            EXPECT_LE(shape.together, 16);
            if (target == "sm_90a" && shape.turns > 1) {
              EXPECT_LE(together * (own + shape.shared_bytes + 1024), 228 * 1024);
            }
          } else {
            EXPECT_EQ(shape.rows, rows == 27 ? 32 : rows == 12 ? 16 : rows);
          }
        }
      }
    }
  }
}

TEST(CudaProductShapes, FewRowsOfManyColumnsHaveTwoLapsOnHopper) {
  Kernel kernel = product_kernel(2048, DType::kBF16, 8, 5400);
  const auto& product = std::get<ProductKernel>(kernel.body);
  EXPECT_EQ(cuda_product_shape(kernel, product).laps, 1);
  kernel.target = "sm_90a";
  const CudaProductShape shape = cuda_product_shape(kernel, product);
  EXPECT_EQ(shape.laps, 2);
  EXPECT_EQ(shape.registers, 112);
  EXPECT_LE(shape.shared_bytes, 164 * 1024);
}

TEST(CudaProductShapes, BlocksThatShareColumnsHaveWords) {
  const Kernel kernel = product_kernel(8192, DType::kBF16, 8);
  const auto& product = std::get<ProductKernel>(kernel.body);
  const CudaProductShape shape = cuda_product_shape(kernel, product);
  ASSERT_EQ(shape.splits, 4);
  EXPECT_EQ(cuda_product_words(shape, product, 8), 4 * 8 * (kOutputs + shape.blocks));
  EXPECT_EQ(cuda_product_words(shape_of(2048, DType::kBF16, 8), product, 8), 0);
  EXPECT_EQ(cuda_product_workspace(shape, product, 8), 0);
}

}  // namespace
}  // namespace assay::engine
