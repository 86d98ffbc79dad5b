// Sessions of one model by turns, which share its recorded steps. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "cuda_driver.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

constexpr int64_t kPositions = 48;

class CudaTurns : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
  // They have one length, and differ in their tokens.
  static PromptBatch prompts_of(int64_t length, int32_t rows) {
    std::vector<Prompt> prompts(static_cast<size_t>(rows));
    for (int32_t row = 0; row < rows; ++row) {
      for (int32_t i = 0; i < length; ++i) {
        prompts[static_cast<size_t>(row)].push_back((i * 7 + row * 5 + 3) % 37);
      }
    }
    return PromptBatch::of(prompts);
  }
};

// Several recorded steps are one graph.
TEST_F(CudaTurns, SessionsOfOneModelDecodeIntoTheirOwnCaches) {
  constexpr int64_t kSteps = 27;
  const TinyCheckpoint checkpoint(families()[1], kPositions);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.decode = true;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session first = open(checkpoint, options);
  auto second = Session::on(first.shared_model(), CacheKind::kStatic, options.compile);
  ASSERT_TRUE(second);
  for (int turn = 0; turn < 6; ++turn) {
    Session& session = turn % 2 == 0 ? first : *second;
    const PromptBatch batch = prompts_of(7 + turn % 2 * 4, 2);
    if (turn < 2) {
      ASSERT_TRUE(session.prepare(2, 11 + kSteps));
    }
    ASSERT_TRUE(session.prefill(batch));
    std::vector<Prompt> tokens(2);
    const auto keep = [&](std::span<const int32_t> next) {
      for (size_t row = 0; row < 2; ++row) tokens[row].push_back(next[row]);
      return true;
    };
    keep(session.next_tokens());
    const int64_t steps = turn < 2 ? 4 : kSteps;  // at first one by one
    ASSERT_TRUE(session.decode_greedy(steps, keep));
    EXPECT_EQ(tokens, generate(processor, batch, steps).tokens) << "turn " << turn;
  }
}

// A batch's graphs have its products, whatever another batch has made of the step since.
TEST_F(CudaTurns, BatchesOfOneModelKeepTheirProducts) {
  constexpr int64_t kChunk = 7, kChunks = 3, kCapacity = 11 + kChunk * kChunks;
  const TinyCheckpoint checkpoint(families()[1], kPositions);
  SessionOptions options{
      .cache = CacheKind::kStatic, .dtype = DType::kBF16, .threads = 2, .gpu = 0};
  options.compile.decode = true;
  options.compile.dynamic = Dynamic::kTrue;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session many = open(checkpoint, options);  // rows for the library
  auto few = Session::on(many.shared_model(), CacheKind::kStatic, options.compile);
  ASSERT_TRUE(few);
  const auto tokens_of = [&](Session& session, int32_t rows, int64_t steps, int64_t times) {
    std::vector<int32_t> tokens;
    EXPECT_TRUE(session.prefill(prompts_of(11, rows)));
    for (int64_t i = 0; i < times; ++i) {
      EXPECT_TRUE(session.decode_greedy(steps, [&](std::span<const int32_t> next) {
        tokens.insert(tokens.end(), next.begin(), next.end());
        return true;
      }));
    }
    return tokens;
  };
  ASSERT_TRUE(many.prepare(20, kCapacity));
  ASSERT_TRUE(few->prepare(2, kCapacity));
  tokens_of(many, 20, kChunk, kChunks);  // launched, then one by one
  const auto one_by_one = tokens_of(many, 20, kChunk, kChunks);
  tokens_of(*few, 2, kChunk, kChunks);
  EXPECT_EQ(tokens_of(many, 20, kChunk * kChunks, 1), one_by_one);
  EXPECT_EQ(many.counters().fallbacks, 0);
}

}  // namespace
}  // namespace assay::engine
