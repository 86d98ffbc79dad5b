// The rule of ok rows: enough tokens, times that a clock shows, and no faster than the memory.
#include "artifact/row_rule.h"

#include <gtest/gtest.h>

#include "artifact/fixture_test.h"

namespace assay {
namespace {

const ReadDemand kNothingKnown;

Row decoding(int64_t tokens, double latency_ms) {
  Row row = test_row(0, Phase::kKvDecode);
  row.batch = 2;
  row.new_tokens = 10;
  row.tokens = tokens;
  row.latency_ms = latency_ms;
  return row;
}

std::string fault_class(const Row& row, const ReadDemand& demand = kNothingKnown) {
  const auto fault = fault_of(row, demand);
  return fault ? std::string(fault->error_class) : "";
}

TEST(RowRule, WantsEveryTokenOfTheBatch) {
  EXPECT_EQ(fault_class(decoding(20, 0.001)), "");
  EXPECT_EQ(fault_class(decoding(19, 0.001)), "too_few_tokens");
  EXPECT_EQ(fault_class(decoding(10, 0.001)), "too_few_tokens");
  EXPECT_EQ(fault_class(decoding(0, 0.001)), "too_few_tokens");
  EXPECT_EQ(fault_class(decoding(21, 0.001)), "too_many_tokens");
  EXPECT_EQ(fault_of(decoding(10, 0.001), {})->problem,
            "expected 20 tokens on an ok row of batch 2 and 10 new tokens, found 10");
  Row huge = decoding(20, 0.001);
  huge.batch = huge.new_tokens = INT64_MAX;
  EXPECT_EQ(fault_class(huge), "too_few_tokens");
}

TEST(RowRule, PrefillOwesOneTokenARowOfTheBatch) {
  Row row = test_row(0, Phase::kPrefill);
  row.batch = 3;
  row.tokens = 3;
  EXPECT_EQ(fault_class(row), "");
  row.tokens = 0;
  EXPECT_EQ(fault_class(row), "too_few_tokens");
}

TEST(RowRule, WantsATimeThatAClockShows) {
  EXPECT_EQ(fault_class(decoding(20, 0)), "zero_latency");
  EXPECT_EQ(fault_class(decoding(20, 5e-324)), "impossible_latency");
  EXPECT_EQ(fault_class(decoding(20, 0.99e-6)), "impossible_latency");
  EXPECT_EQ(fault_class(decoding(20, 1 / 1e6)), "");  // one nanosecond, as the harness writes it
  EXPECT_EQ(fault_class(decoding(20, 3e10)), "");
  EXPECT_EQ(fault_class(decoding(20, 3.3e10)), "impossible_latency");
  EXPECT_EQ(fault_class(decoding(20, 1e308)), "impossible_latency");
  EXPECT_EQ(fault_class(decoding(20, -1)), "impossible_latency");
  Row row = decoding(20, 1);
  row.device_ms = 1e300;
  EXPECT_EQ(fault_class(row), "impossible_latency");
}

TEST(RowRule, AnOkRowHasALatencyAndTokens) {
  Row row = decoding(20, 1);
  row.latency_ms.reset();
  EXPECT_EQ(fault_class(row), "no_latency");
  row = decoding(20, 1);
  row.tokens.reset();
  EXPECT_EQ(fault_class(row), "no_tokens");
}

// 10 passes over 101 MB, of which 1 MB each may come from the cache: 1 GB, at 12.5 GB/s 80 ms.
TEST(RowRule, FasterThanTheWeightsCanBeRead) {
  const ReadDemand demand{.read_bytes = 10 * 101e6, .bytes_per_s = 10e9, .cache_bytes = 1e6};
  EXPECT_EQ(fault_class(decoding(20, 79.9), demand), kFasterThanMemory);
  EXPECT_EQ(fault_class(decoding(20, 80.1), demand), "");
  const ReadDemand cached{.read_bytes = 10 * 1e6, .bytes_per_s = 10e9, .cache_bytes = 1e6};
  EXPECT_EQ(fault_class(decoding(20, 1e-6), cached), "") << "it fits the cache";
}

TEST(RowRule, WithoutFiguresTheSpeedIsNotJudged) {
  EXPECT_FALSE(kNothingKnown.known());
  EXPECT_EQ(fault_class(decoding(20, 1e-6), {.read_bytes = 1e15}), "");
  EXPECT_EQ(fault_class(decoding(20, 1e-6), {.bytes_per_s = 1}), "");
}

TEST(RowRule, TakesWhatTheEvidenceHas) {
  Evidence evidence;
  evidence.read_bytes = {{16, 1'000'000}};
  evidence.read_limit = {2e9, 500, 0.5};
  const ReadDemand demand = read_demand(evidence, 16);
  EXPECT_TRUE(demand.known());
  EXPECT_EQ(demand.read_bytes, 1e6);
  EXPECT_EQ(demand.bytes_per_s, 2e9);
  EXPECT_EQ(demand.cache_bytes, 500);
  EXPECT_EQ(demand.tolerance, 0.5);
  EXPECT_FALSE(read_demand(evidence, 17).known()) << "another length";
  evidence.read_limit->tolerance.reset();
  EXPECT_EQ(read_demand(evidence, 16).tolerance, kReadTolerance);
  evidence.read_limit.reset();
  EXPECT_FALSE(read_demand(evidence, 16).known());
  evidence.read_limit = {0, 500, 0.5};
  EXPECT_FALSE(read_demand(evidence, 16).known());
  EXPECT_FALSE(read_demand(Evidence(), 16).known());
}

TEST(RowRule, MarksOnlyOkRows) {
  Row row = decoding(0, 1);
  EXPECT_TRUE(mark_false_success(row, {}));
  EXPECT_EQ(row.status, RowStatus::kFalseSuccess);
  EXPECT_EQ(row.error_class, "too_few_tokens");
  EXPECT_FALSE(mark_false_success(row, {}));
  row.status = RowStatus::kCrash;
  row.error_class = "SIGSEGV";
  EXPECT_FALSE(mark_false_success(row, {}));
  EXPECT_EQ(row.error_class, "SIGSEGV");
}

}  // namespace
}  // namespace assay
