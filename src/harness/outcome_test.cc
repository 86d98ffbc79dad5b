// The judgement of samples: enough tokens, and no faster than the memory.
#include "harness/outcome.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr WireShape kDecode{WirePhase::kKvDecode, 2, 10, 20};
const ReadLimit kLimit{10e9, 1'000'000};

SampleReply sample(int64_t tokens, int64_t latency_ns, std::optional<int64_t> read_bytes) {
  SampleReply reply;
  reply.tokens = tokens;
  reply.latency_ns = latency_ns;
  reply.read_bytes = read_bytes;
  return reply;
}

TEST(JudgeSample, WantsEveryTokenOfTheBatch) {
  EXPECT_EQ(judge_sample(sample(20, 1000, {}), kDecode, {}), RowOutcome{});
  EXPECT_EQ(judge_sample(sample(19, 1000, {}), kDecode, {}),
            (RowOutcome{RowStatus::kFalseSuccess, "too_few_tokens"}));
  EXPECT_EQ(judge_sample(sample(0, 1000, {}), kDecode, {}).status, RowStatus::kFalseSuccess);
  EXPECT_EQ(judge_sample(sample(21, 1000, {}), kDecode, {}).error_class, "too_many_tokens");
}

TEST(JudgeSample, PrefillOwesOneTokenARow) {
  const WireShape prefill{WirePhase::kPrefill, 3, 0, 8};
  EXPECT_EQ(judge_sample(sample(3, 1000, {}), prefill, {}).status, RowStatus::kOk);
  EXPECT_EQ(judge_sample(sample(0, 1000, {}), prefill, {}).error_class, "too_few_tokens");
}

TEST(JudgeSample, NoTimeAtAllIsFalse) {
  EXPECT_EQ(judge_sample(sample(20, 0, {}), kDecode, {}).error_class, "zero_latency");
}

TEST(JudgeSample, TokensOfNothingAreNoSuccess) {
  SampleReply reply = sample(20, 1000, {});
  reply.non_finite = true;
  EXPECT_EQ(judge_sample(reply, kDecode, {}), (Outcome{RowStatus::kFalseSuccess, "non_finite"}));
}

// 10 passes over 101 MB, of which 1 MB each may come from the cache: 1 GB, at 12.5 GB/s 80 ms.
TEST(JudgeSample, FasterThanTheWeightsCanBeRead) {
  const int64_t bytes = 10 * 101'000'000;
  EXPECT_EQ(judge_sample(sample(20, 79'900'000, bytes), kDecode, kLimit).error_class,
            "faster_than_memory");
  EXPECT_EQ(judge_sample(sample(20, 80'100'000, bytes), kDecode, kLimit), RowOutcome{});
}

TEST(JudgeSample, WhatFitsTheCacheIsNotJudged) {
  EXPECT_EQ(judge_sample(sample(20, 1, 10 * 1'000'000), kDecode, kLimit), RowOutcome{});
}

TEST(JudgeSample, WithoutFiguresThereIsNoJudgement) {
  EXPECT_EQ(judge_sample(sample(20, 1, int64_t{1} << 50), kDecode, {}), RowOutcome{});
  EXPECT_EQ(judge_sample(sample(20, 1, {}), kDecode, kLimit), RowOutcome{});
}

TEST(OutcomeOf, KeepsTheClass) {
  EXPECT_EQ(outcome_of({FailureKind::kCrash, "SIGSEGV", ""}),
            (RowOutcome{RowStatus::kCrash, "SIGSEGV"}));
  EXPECT_EQ(outcome_of({FailureKind::kOutOfMemory, "std::bad_alloc", ""}).status, RowStatus::kOom);
  EXPECT_EQ(outcome_of({FailureKind::kTimeout, "timeout", ""}).status, RowStatus::kTimeout);
  EXPECT_EQ(outcome_of({FailureKind::kError, "E", ""}).status, RowStatus::kError);
}

}  // namespace
}  // namespace assay
