// Requests to a server, phase by phase.
#include "import/formats/served_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "ok 25" of each row of the phase and scenario, with its latency.
std::vector<std::string> phase_times_of(const ImportedRows& made, Phase phase,
                                        std::string_view scenario) {
  std::vector<std::string> times;
  for (const Row& row : made.rows) {
    if (row.phase != phase || row.scenario != scenario) continue;
    std::string text(row_status_name(row.status));
    if (row.latency_ms) text += fmt::format(" {:g}", *row.latency_ms);
    times.push_back(text);
  }
  return times;
}

constexpr const char* kServeHead =
    R"({"backend": "vllm", "model_id": "m", "request_rate": 2.0, "duration": 2.0, "completed": 2,)"
    R"( "request_throughput": 1.0, "total_input_tokens": 20, "total_output_tokens": 6, "num_prompts": 4)";

TEST(ServedRequests, EachPhaseHasItsTimesAndALossIsOneInEach) {
  const auto made = rows_of_text(
      kServeHead +
      std::string(R"(, "input_lens": [10, 11, 10, 10], "output_lens": [3, 1, 0, 0],)"
                  R"( "ttfts": [0.5, 0.25, 0.1, 0], "itls": [[0.125, 0.375], [], [], []],)"
                  R"( "errors": ["", "", "", "ServerTimeoutError: late"]})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(phase_times_of(*made, Phase::kE2eKv, "rate-2.0"),
              ElementsAre("ok 1000", "ok 250", "false_success 100", "timeout"));
  EXPECT_THAT(phase_times_of(*made, Phase::kPrefill, "rate-2.0-ttft"),
              ElementsAre("ok 500", "ok 250", "false_success", "timeout"));
  // An answer of one token has no second one.
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-tpot"),
              ElementsAre("ok 250", "false_success", "timeout"));
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-itl"),
              ElementsAre("ok 125", "ok 375", "false_success", "timeout"));
  for (const Row& row : made->rows) {
    EXPECT_TRUE(!row.ttft_ms || row.phase == Phase::kE2eKv);
    EXPECT_TRUE(row.phase != Phase::kKvDecode || row.new_tokens == 1);
  }
}

TEST(ServedRequests, ChunksOfSeveralTokensAreNoGaps) {
  const auto made =
      rows_of_text(kServeHead + std::string(R"(, "input_lens": [10], "output_lens": [5],)"
                                            R"( "ttfts": [0.5], "itls": [[0.25, 0.25]]})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-tpot"), ElementsAre("ok 125"));
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-itl"), IsEmpty());
}

TEST(ServedRequests, OfMeansEachPhaseHasTheOneThatTheFileStates) {
  const auto made = rows_of_text(
      kServeHead +
      std::string(R"(, "mean_ttft_ms": 100.0, "mean_tpot_ms": 20.0, "mean_itl_ms": 19.0})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->means, 3);
  EXPECT_THAT(phase_times_of(*made, Phase::kPrefill, "rate-2.0-ttft"), ElementsAre("ok 100"));
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-tpot"), ElementsAre("ok 20"));
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "rate-2.0-itl"), ElementsAre("ok 19"));
  EXPECT_THAT(phase_times_of(*made, Phase::kE2eKv, "rate-2.0"), IsEmpty()) << "no mean_e2el_ms";
}

TEST(ServedRequests, SoManyGapsThatTheyWouldFillTheBundleAreLeftOut) {
  for (const size_t gaps : {kMostGaps, kMostGaps + 1}) {
    Imported imported{.format = "f", .tool = {}};
    ServedRequest request{.whole = {}, .token_ms = 5};
    request.whole.latency_ms = 10;
    request.gaps_ms.assign(gaps, 5);
    ASSERT_TRUE(add_served({.source = "file", .facts = {}}, {request}, imported));
    EXPECT_EQ(imported.runs.size(), gaps > kMostGaps ? 2U : 3U);
  }
}

constexpr const char* kGuidellm =
    R"({"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": [{"config": {"strategy":)"
    R"( {"type_": "constant", "rate": RATE}, "backend": {"model": "m", "target": "http://x"}},)"
    R"( "requests": {"successful": [{"request_start_time": 2.0, "request_latency": 1.0,)"
    R"( "time_to_first_token_ms": 200.0, "output_tokens": 5, "prompt_tokens": 7}],)"
    R"x( "errored": [{"request_start_time": 1.0, "info": {"error": "ReadTimeout('late')"}}],)x"
    R"( "incomplete": [{}, {}]}}]})";

std::string guidellm_at(const std::string& rate) {
  std::string text = kGuidellm;
  return text.replace(text.find("RATE"), 4, rate);
}

TEST(Guidellm, RequestsAreInTheirOrderAndTheOnesCutOffAreTold) {
  const auto imported = import_text(guidellm_at("8.0"));
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("2 requests were cut off"), kServedNote));
  EXPECT_EQ(imported->tool, "guidellm 0.8.1");
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(phase_times_of(*made, Phase::kE2eKv, "constant-8.0"),
              ElementsAre("timeout", "ok 1000"));
  EXPECT_THAT(phase_times_of(*made, Phase::kPrefill, "constant-8.0-ttft"),
              ElementsAre("timeout", "ok 200"));
  EXPECT_THAT(phase_times_of(*made, Phase::kKvDecode, "constant-8.0-tpot"),
              ElementsAre("timeout", "ok 200"));
  EXPECT_EQ(made->rows[0].error_class, "ReadTimeout");
  EXPECT_EQ(made->rows[1].prompt_tokens, 7);
  EXPECT_EQ(made->rows[1].started_at_ns, 2'000'000'000);
}

TEST(Guidellm, EachRateIsAConditionOfItsOwn) {
  std::vector<SourceText> sources;
  for (const char* rate : {"2.0", "8.0"}) {
    sources.push_back(*parse_source(guidellm_at(rate), std::string("rate") + rate));
  }
  const auto imported = import_sources(sources, std::nullopt, nullptr);
  ASSERT_TRUE(imported) << imported.error().message;
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  ASSERT_TRUE(made) << made.error().message;
  for (const char* load : {"constant-2.0", "constant-8.0"}) {
    EXPECT_EQ(phase_times_of(*made, Phase::kE2eKv, load).size(), 2U) << load;
  }
  EXPECT_THAT(made->arms, ElementsAre("guidellm"));
}

TEST(Guidellm, ForeignListsAreOneLine) {
  std::string text = guidellm_at("1.0");
  EXPECT_EQ(import_refusal(text), "read");
  text.replace(text.find(R"("errored": [)"), 12, R"("errored": 5, "x": [)");
  EXPECT_EQ(import_refusal(text),
            "file: benchmark 1: expected a list at \"requests.errored\", found 5");
  text = guidellm_at("1.0");
  text.replace(text.find("strategy"), 8, "straggle");
  EXPECT_EQ(import_refusal(text),
            "file: benchmark 1: expected the load at \"config.strategy\", found nothing");
}

}  // namespace
}  // namespace assay
