// Panels against the definition of Packing: every output in its column, zeros in the padding.
#include "engine/device/cpu/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/codegen/cpu/scratch_folder.h"
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

// Weights of all layers, one of them twice, as prepare() asks for them.
class KeptWeightsTest : public PackedWeightsTest {
 protected:
  std::vector<ProductWeight> products() const {
    std::vector<ProductWeight> all;
    for (const TensorSpec& spec : weights_->tensors()) {
      if (spec.shape.rank() != 2) continue;
      all.push_back(
          {{.tensors = {spec.name}}, WeightLayout::kOutIn, {.segments = {spec.shape[0]}}});
    }
    all.push_back(all.front());
    return all;
  }
  WeightCache cache() const { return *WeightCache::open(scratch_.path() / "kernels"); }

  // Its bytes are those that are packed in memory; the bytes that it found in a file.
  uint64_t expect_packed(const std::string& note = "") {
    WeightCache kept = cache();
    PackedWeights in_file(*weights_, pool_), in_memory(*weights_, pool_);
    std::vector<std::string> notes;
    EXPECT_TRUE(in_file.pack(products(), &kept, notes));
    if (note.empty()) {
      EXPECT_THAT(notes, testing::IsEmpty());
    } else {
      EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr(note)));
    }
    const uint64_t bytes = in_file.bytes();
    for (const ProductWeight& one : products()) {
      const std::byte* const found = *in_file.product(one.source, one.layout, one.packing);
      const std::byte* const expected = *in_memory.product(one.source, one.layout, one.packing);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found) % 64, 0u);
      const auto size = static_cast<size_t>(
          packed_elements(one.packing, weights_->view(one.source.tensors.front()).shape[1]));
      EXPECT_EQ(std::memcmp(found, expected, size * dtype_size_bytes(weights_->dtype())), 0)
          << one.source.tensors.front();
    }
    EXPECT_EQ(in_file.bytes(), bytes) << "nothing was packed again";
    EXPECT_GE(bytes, in_memory.bytes());
    return in_file.found_bytes();
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path() / "kernels"))
      all.push_back(entry.path());
    return all;
  }

  ScratchFolder scratch_;
};

TEST_F(KeptWeightsTest, TheFirstMakesAFileAndTheNextMapsIt) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    load(dtype);
    EXPECT_EQ(expect_packed(), 0u);
    EXPECT_GT(expect_packed(), 0u);
  }
  EXPECT_EQ(files().size(), 3u) << "one a type";
}

TEST_F(KeptWeightsTest, ADamagedFileIsMadeAnew) {
  EXPECT_EQ(expect_packed(), 0u);
  std::filesystem::resize_file(files().front(), 1000);
  EXPECT_EQ(expect_packed(), 0u);
  EXPECT_GT(expect_packed(), 0u);
}

// The same bytes again are another file too: only its times of change are looked at.
TEST_F(KeptWeightsTest, AnotherCheckpointAtItsPathHasAFileOfItsOwn) {
  EXPECT_EQ(expect_packed(), 0u);
  for (const char* name : {"model.safetensors", "config.json"}) {
    const std::filesystem::path path = folder_.folder() / name;
    ASSERT_TRUE(write_file(path, *read_file(path)));
    load(std::nullopt);
    EXPECT_EQ(expect_packed(), 0u) << name;
  }
  EXPECT_GT(expect_packed(), 0u);
}

TEST_F(KeptWeightsTest, NothingIsKeptOfACheckpointThatHasChanged) {
  const std::filesystem::path path = folder_.folder() / "model.safetensors";
  ASSERT_TRUE(write_file(path, *read_file(path)));
  EXPECT_EQ(expect_packed("expected files that stay as they were when they were opened"), 0u);
  EXPECT_THAT(files(), testing::IsEmpty());
}

TEST_F(KeptWeightsTest, WithoutRoomTheyArePackedInMemory) {
  WeightCache none = *WeightCache::open(scratch_.path() / "kernels", 1000);
  PackedWeights packed(*weights_, pool_);
  std::vector<std::string> notes;
  ASSERT_TRUE(packed.pack(products(), &none, notes));
  EXPECT_THAT(notes,
              testing::ElementsAre(testing::AllOf(testing::StartsWith("weight cache: not used: "),
                                                  testing::HasSubstr("found a limit of 1.00 kB"))));
  EXPECT_GT(packed.bytes(), 0u);
  EXPECT_THAT(files(), testing::IsEmpty());
}

// A user who has most weights in a file pages in those that are read in place.
TEST_F(PackedWeightsTest, WeightsThatArePagedInWhenAskedAreTheSame) {
  auto checkpoint = Checkpoint::open(folder_.folder());
  ASSERT_TRUE(checkpoint);
  const auto later =
      Weights::load(*std::move(checkpoint), std::nullopt, memory_, Weights::Paging::kWhenAsked);
  ASSERT_TRUE(later);
  for (const TensorSpec& spec : weights_->tensors()) {
    later->page_in(spec.name);
    EXPECT_EQ(std::memcmp(later->tensor(spec.name).data, weights_->tensor(spec.name).data,
                          weights_->tensor(spec.name).size_bytes()),
              0);
  }
}

}  // namespace
}  // namespace assay::engine
