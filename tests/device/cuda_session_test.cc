// Whole sessions on a GPU against the processor's: every family, eager and compiled, both caches,
// padded batches, to the last token in fp32, by their logits in 16 bits. Skipped where there is no
// GPU.
#include <gtest/gtest.h>

#include <tuple>

#include "cuda_driver.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

constexpr int64_t kPositions = 700, kTokens = 128, kFewTokens = 8;

// Of any length, padded on the left; a row's own is shorter by three than the one before.
PromptBatch some_prompts(int64_t length, size_t rows) {
  std::vector<Prompt> prompts(rows);
  for (size_t row = 0; row < rows; ++row) {
    const auto own = std::max<int64_t>(length - static_cast<int64_t>(row) * 3, 1);
    for (int64_t i = 0; i < own; ++i) {
      prompts[row].push_back(
          static_cast<int32_t>((i * 7 + static_cast<int64_t>(row) * 5 + 3) % 37));
    }
  }
  return PromptBatch::of(prompts);
}

// Kernels of all cases, so that each is compiled once.
std::filesystem::path kernels_of_all_cases() {
  return std::filesystem::path(testing::TempDir()) / fmt::format("assay-gpu-kernels-{}", getuid());
}

class CudaSessions
    : public testing::TestWithParam<std::tuple<size_t, CacheKind, bool, Dynamic, size_t>> {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaSessions, GiveTheTokensOfTheProcessor) {
  const auto [family, cache, compiled, dynamic, rows] = GetParam();
  const TinyCheckpoint checkpoint(families()[family], kPositions);
  SessionOptions options{.cache = cache, .dtype = DType::kF32, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = compiled;
  options.compile.dynamic = dynamic;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = kernels_of_all_cases();
  Session gpu = open(checkpoint, options);
  const int64_t tokens_each = test::on_the_processor() ? kFewTokens : kTokens;
  const std::vector<int64_t> all_lengths = {1, 9, 37}, one_length = {9};
  for (const int64_t length : test::on_the_processor() ? one_length : all_lengths) {
    const PromptBatch batch = some_prompts(length, rows);
    const Generation expected = generate(processor, batch, tokens_each);
    const Generation found = generate(gpu, batch, tokens_each);
    ASSERT_EQ(found.tokens, expected.tokens) << "prompts of " << length;
    // The same without the host between the steps, twice over one cache.
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_TRUE(gpu.prepare(batch.batch, batch.padded_len + tokens_each));
      ASSERT_TRUE(gpu.prefill(batch));
      std::vector<Prompt> tokens(rows);
      const auto keep = [&](std::span<const int32_t> next) {
        for (size_t row = 0; row < rows; ++row) tokens[row].push_back(next[row]);
      };
      keep(gpu.next_tokens());
      ASSERT_TRUE(gpu.decode_greedy(tokens_each, keep));
      ASSERT_EQ(tokens, expected.tokens) << "prompts of " << length;
      EXPECT_TRUE(gpu.logits_finite());
      expect_near(gpu.logits(), expected.logits.back(), 1e-4);
    }
    for (size_t i = 0; i < found.logits.size(); ++i) {
      expect_near(found.logits[i], expected.logits[i], 1e-4);
    }
  }
  if (compiled && dynamic == Dynamic::kTrue) {
    EXPECT_EQ(gpu.counters().fallbacks, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaSessions,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(CacheKind::kDynamic, CacheKind::kStatic),
                                          testing::Values(false, true),
                                          testing::Values(Dynamic::kFalse, Dynamic::kTrue),
                                          testing::Values(1, 3)));

// Models of 16 bits, whose caches are too, fed with the tokens of the processor, whose caches are
// fp32.
class CudaHalfSessions
    : public testing::TestWithParam<std::tuple<size_t, DType, CacheKind, bool, size_t>> {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaHalfSessions, AreNearTheProcessors) {
  constexpr int64_t kSteps = 12;
  const auto [family, dtype, cache, compiled, rows] = GetParam();
  const TinyCheckpoint checkpoint(families()[family], kPositions);
  SessionOptions options{.cache = cache, .dtype = dtype, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = compiled;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = kernels_of_all_cases();
  Session gpu = open(checkpoint, options);
  const double tolerance = dtype == DType::kF16 ? 4e-3 : 3e-2;
  for (const int64_t length : {1, 9, 37}) {
    const PromptBatch batch = some_prompts(length, rows);
    const Generation expected = generate(processor, batch, kSteps);
    ASSERT_TRUE(gpu.prepare(batch.batch, batch.padded_len + kSteps));
    ASSERT_TRUE(gpu.prefill(batch));
    for (size_t step = 0; step < expected.logits.size(); ++step) {
      expect_near(gpu.logits(), expected.logits[step], tolerance);
      if (HasFatalFailure()) FAIL() << "prompts of " << length << ", step " << step;
      if (step + 1 == expected.logits.size()) break;
      std::vector<int32_t> tokens;
      for (const Prompt& row : expected.tokens) tokens.push_back(row[step]);
      ASSERT_TRUE(gpu.decode(tokens));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaHalfSessions,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(DType::kBF16, DType::kF16),
                                          testing::Values(CacheKind::kDynamic, CacheKind::kStatic),
                                          testing::Values(false, true), testing::Values(1, 3)));

}  // namespace
}  // namespace assay::engine
