// Panels against the definition of Packing: every output in its column, zeros in the padding.
#include "engine/device/cpu/packed_weights.h"

#include <gtest/gtest.h>

#include "engine/codegen/kernel.h"
#include "engine/ops/element.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

// A tiny Llama's tensors, of which q, k, v and gate, up merge: widths 24, 12, 12 and 28, 28.
class PackedWeightsTest : public ::testing::Test {
 protected:
  PackedWeightsTest() { load(std::nullopt); }

  void load(std::optional<DType> dtype) {
    auto checkpoint = Checkpoint::open(folder_.folder());
    EXPECT_TRUE(checkpoint);
    auto loaded = Weights::load(std::move(checkpoint).value(), dtype, memory_);
    EXPECT_TRUE(loaded);
    weights_ = std::make_unique<Weights>(std::move(loaded).value());
  }

  float element(const std::byte* data, int64_t i) const {
    return load_element(data, weights_->dtype(), i);
  }

  // Column `column` of the packed weight holds output `output` of the tensor, or zeros.
  void expect_column(const std::byte* packed, int64_t column, const std::string& tensor,
                     std::optional<int64_t> output) {
    constexpr int64_t kInputs = 20, kPadded = 32;
    for (int64_t i = 0; i < kPadded; ++i) {
      const int64_t at = column / Packing::kPanel * kPadded * Packing::kPanel +
                         Packing::element(weights_->dtype(), i, column % Packing::kPanel);
      const float expected = i < kInputs && output
                                 ? element(weights_->tensor(tensor).data, *output * kInputs + i)
                                 : 0.0f;
      ASSERT_EQ(element(packed, at), expected) << tensor << " column " << column << " input " << i;
    }
  }

  TinyCheckpoint folder_{families()[1]};
  ThreadPool pool_{2};
  BufferPool memory_;
  std::unique_ptr<Weights> weights_;
};

TEST_F(PackedWeightsTest, SegmentsStartAtTilesAndEndInZeros) {
  const std::string prefix = "model.layers.0.self_attn.";
  const WeightSource source{
      .tensors = {prefix + "q_proj.weight", prefix + "k_proj.weight", prefix + "v_proj.weight"},
      .axis = 0,
      .widths = {24, 12, 12}};
  const Packing packing{.tile = 64, .segments = {24, 12, 12}};
  PackedWeights packed(*weights_, pool_);
  const auto data = packed.product(source, WeightLayout::kOutIn, packing);
  ASSERT_TRUE(data);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*data) % 64, 0u);
  for (int64_t tile = 0; tile < 3; ++tile) {
    for (int64_t c = 0; c < 64; ++c) {
      const bool inside = c < source.widths[static_cast<size_t>(tile)];
      expect_column(*data, tile * 64 + c, source.tensors[static_cast<size_t>(tile)],
                    inside ? std::optional(c) : std::nullopt);
    }
  }
  const uint64_t bytes = packed.bytes();
  EXPECT_EQ(*packed.product(source, WeightLayout::kOutIn, packing), *data);  // one copy
  EXPECT_EQ(packed.bytes(), bytes);
}

// A panel without padding is packed by words where its type has them: 10 of each column here in
// bf16, and 20 in fp32.
TEST_F(PackedWeightsTest, APanelWithoutPaddingHoldsTheSameInEachType) {
  const std::string head = "lm_head.weight";
  for (const DType dtype : {DType::kBF16, DType::kF32, DType::kF16}) {
    load(dtype);
    PackedWeights packed(*weights_, pool_);
    const auto data = packed.product({.tensors = {head, head}, .axis = 0, .widths = {41, 41}},
                                     WeightLayout::kOutIn, {.tile = 64, .segments = {82}});
    ASSERT_TRUE(data);
    for (int64_t c = 0; c < 128; ++c)
      expect_column(*data, c, head, c < 82 ? std::optional(c % 41) : std::nullopt);
  }
}

TEST_F(PackedWeightsTest, InterleavedSegmentsShareTiles) {
  const std::string prefix = "model.layers.1.mlp.";
  const WeightSource source{.tensors = {prefix + "gate_proj.weight", prefix + "up_proj.weight"},
                            .axis = 0,
                            .widths = {28, 28}};
  PackedWeights packed(*weights_, pool_);
  const auto data = packed.product(source, WeightLayout::kOutIn,
                                   {.tile = 128, .segments = {28, 28}, .interleaved = true});
  ASSERT_TRUE(data);
  for (int64_t c = 0; c < 128; ++c) {
    expect_column(*data, c, source.tensors[c < 64 ? 0 : 1],
                  c % 64 < 28 ? std::optional(c % 64) : std::nullopt);
  }
}

TEST_F(PackedWeightsTest, WhatIsNoProductsLiesWhereItLay) {
  PackedWeights packed(*weights_, pool_);
  const std::string norm = "model.norm.weight";
  EXPECT_EQ(*packed.plain({.tensors = {norm}}), weights_->tensor(norm).data);
  EXPECT_EQ(packed.bytes(), 0u);
  const auto both = packed.plain({.tensors = {norm, norm}, .widths = {20, 20}});
  ASSERT_TRUE(both);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(element(*both, i), element(weights_->tensor(norm).data, i % 20));
  }
}

// In rows a column's inputs follow each other, and columns that are computed together stand side
// by side: halves of heads of 6 here, and gate beside up.
TEST_F(PackedWeightsTest, RowsHoldAColumnEachAndPairsStandTogether) {
  const auto expect_row = [&](const std::byte* packed, int64_t column, const std::string& tensor,
                              int64_t output) {
    for (int64_t i = 0; i < 32; ++i) {
      const float expected =
          i < 20 && output >= 0 ? element(weights_->tensor(tensor).data, output * 20 + i) : 0.0f;
      ASSERT_EQ(element(packed, column * 32 + i), expected) << tensor << " " << column;
    }
  };
  const std::string attention = "model.layers.0.self_attn.", mlp = "model.layers.0.mlp.";
  PackedWeights packed(*weights_, pool_);
  const auto q =
      packed.product({.tensors = {attention + "q_proj.weight"}}, WeightLayout::kOutIn,
                     {.tile = 64, .segments = {24}, .layout = TileLayout::kRows, .half_head = 3});
  ASSERT_TRUE(q);
  const int64_t in_order[] = {0, 3, 1, 4, 2, 5};
  for (int64_t c = 0; c < 64; ++c) {
    const int64_t output = c < 24 ? c / 6 * 6 + in_order[c % 6] : -1;
    expect_row(*q, c, attention + "q_proj.weight", output);
  }
  const auto gated = packed.product(
      {.tensors = {mlp + "gate_proj.weight", mlp + "up_proj.weight"},
       .axis = 0,
       .widths = {28, 28}},
      WeightLayout::kOutIn,
      {.tile = 64, .segments = {28, 28}, .interleaved = true, .layout = TileLayout::kRows});
  ASSERT_TRUE(gated);
  for (int64_t c = 0; c < 64; ++c) {
    const int64_t output = c < 56 ? c / 2 : -1;
    expect_row(*gated, c, mlp + (c % 2 == 0 ? "gate_proj.weight" : "up_proj.weight"), output);
  }
}

}  // namespace
}  // namespace assay::engine
