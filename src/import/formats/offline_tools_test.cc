// Files without requests or settings: vLLM's offline benchmarks, and llama-bench's tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(VllmOffline, LatencyHasItsBatchesBehindTheToolsOwnWarmUp) {
  const auto made = rows_of_text(
      R"({"avg_latency": 0.5, "std_latency": 0.1, "latencies": [0.4, 0.6], "percentiles": {"50": 0.5}})");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 2U);
  EXPECT_EQ(*made->rows[0].latency_ms, 400);
  EXPECT_EQ(made->cold, 0);
  EXPECT_EQ(made->rows[0].phase, Phase::kE2eKv);
  EXPECT_THAT(made->unknown.at("vllm"),
              testing::IsSupersetOf({"model", "batch", "setting.num_iters_warmup"}));
}

TEST(VllmOffline, ThroughputIsTheTimeOfAllRequestsWhoseNumberIsACondition) {
  const auto made =
      rows_of_text(R"({"elapsed_time": 12.5, "num_requests": 200, "total_num_tokens": 5000,)"
                   R"( "requests_per_second": 16.0, "tokens_per_second": 400.0})");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 1U);
  EXPECT_EQ(*made->rows[0].latency_ms, 12500);
  EXPECT_EQ(made->rows[0].scenario, "200 requests");
}

TEST(VllmOffline, ForeignTimesAreOneLine) {
  EXPECT_THAT(import_refusal(R"({"avg_latency": 1, "latencies": 5, "percentiles": {}})"),
              HasSubstr("expected a list of numbers at \"latencies\", found 5"));
  EXPECT_THAT(
      import_refusal(R"({"elapsed_time": "x", "num_requests": 2, "requests_per_second": 1})"),
      HasSubstr("elapsed_time"));
}

constexpr const char* kBenchTable =
    "ggml_cuda_init: found 1 CUDA devices\n"
    "| model | size | params | backend | ngl | test | t/s |\n"
    "| ----- | ---: | -----: | ------- | --: | ---: | --: |\n"
    "| llama 1B Q4_0 | 729.75 MiB | 1.24 B | CUDA | 99 | TEST | RATE |\n"
    "\n"
    "build: 4d0dbf6b (7154)\n";

std::string bench_table_of(const std::string& test, const std::string& rate) {
  std::string text = kBenchTable;
  text.replace(text.find("TEST"), 4, test);
  return text.replace(text.find("RATE"), 4, rate);
}

TEST(LlamaBenchMarkdown, ATestIsAMeanWithItsLengthsAndTheBuild) {
  struct Lengths {
    const char* test;
    Phase phase;
    int64_t prompt;
    int64_t generated;
    double ms;
  };
  for (const Lengths& of : {Lengths{"pp500", Phase::kPrefill, 500, 0, 5000},
                            Lengths{"tg50", Phase::kKvDecode, 0, 50, 500},
                            Lengths{"tg 50", Phase::kKvDecode, 0, 50, 500},
                            Lengths{"tg50 @ d4096", Phase::kKvDecode, 4096, 50, 500},
                            Lengths{"pp60+tg40", Phase::kE2eKv, 60, 40, 1000}}) {
    const auto made = rows_of_text(bench_table_of(of.test, "100.00 \u00b1 1.50"));
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->rows.size(), 1U);
    const Row& row = made->rows[0];
    EXPECT_EQ(row.phase, of.phase) << of.test;
    EXPECT_EQ(row.prompt_tokens, of.prompt) << of.test;
    EXPECT_EQ(row.new_tokens, of.generated) << of.test;
    EXPECT_DOUBLE_EQ(*row.latency_ms, of.ms) << of.test;
    EXPECT_EQ(row.quantization, "Q4_0");
    EXPECT_EQ(made->means, 1);
  }
  const auto imported = import_text(bench_table_of("pp500", "100.00 \u00b1 1.50"));
  EXPECT_EQ(imported->runs[0].facts.text(ImportField::kCodeSha), "4d0dbf6b");
}

TEST(LlamaBenchMarkdown, AForeignCellIsNamedWithItsLine) {
  EXPECT_EQ(import_refusal(bench_table_of("pp500", "100.00 \u00b1 1.50")), "read");
  EXPECT_EQ(
      import_refusal(bench_table_of("pp", "1 \u00b1 1")),
      "file line 4: expected a test such as pp512, tg128 or pp512+tg128 @ d4096, found \"pp\"");
  for (const char* rate : {"fast", "0.00 \u00b1 0.00", "-1 \u00b1 0", "nan"}) {
    EXPECT_THAT(import_refusal(bench_table_of("pp5", rate)),
                HasSubstr("file line 4: expected a rate such as 123.45"));
  }
  EXPECT_THAT(import_refusal(bench_table_of("pp5 |", "1")),
              HasSubstr("expected 7 cells as in the header"));
}

}  // namespace
}  // namespace assay
