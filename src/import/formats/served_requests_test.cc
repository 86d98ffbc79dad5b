// Requests to a server, phase by phase.
#include "import/formats/served_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/formats/sample_parts.h"
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

// So many requests at 10 a second, each due half a second before it was sent.
std::vector<ServedRequest> timed(size_t count) {
  std::vector<ServedRequest> requests(count);
  for (size_t i = 0; i < count; ++i) {
    const double due_s = 100 + 0.1 * static_cast<double>(i);
    requests[i].times = ServedTimes{due_s, due_s + 0.5, due_s + 0.6};
    requests[i].whole.prompt_tokens = 7;
    requests[i].whole.tokens = 3;
    requests[i].whole.ttft_ms = 40;
    requests[i].whole.latency_ms = 60;
    requests[i].gaps_ms = {10, 10};
  }
  return requests;
}

ImportedRows load_rows_of(const std::vector<ServedRequest>& requests) {
  Imported imported{.format = "f", .tool = {}};
  ImportedRun load{.source = "file", .facts = {}};
  EXPECT_TRUE(load.facts.state(ImportField::kScenario, "rate-10", "file"));
  EXPECT_TRUE(add_served(load, requests, imported, LoadPoint{.rate = 10}));
  auto made = make_rows(imported, FirstSamples::kByFile);
  EXPECT_TRUE(made);
  return made ? *std::move(made) : ImportedRows();
}

TEST(ServedRequests, WithTheirTimesAreARunUnderLoadFromTheirSchedule) {
  std::vector<ServedRequest> requests = timed(50);
  fail_sample(requests[20].whole, RowStatus::kTimeout, "ReadTimeout", "late");
  const ImportedRows made = load_rows_of(requests);
  const auto row = std::ranges::find(made.rows, Phase::kLoad, &Row::phase);
  ASSERT_NE(row, made.rows.end());
  EXPECT_EQ(row->status, RowStatus::kOk);
  EXPECT_NEAR(*row->latency_ms, 560, 0.01);
  EXPECT_NEAR(*row->ttft_ms, 540, 0.01);
  EXPECT_FALSE(row->cold);
  ASSERT_EQ(made.requests.size(), 50U);
  EXPECT_EQ(made.offered.at("rate-10").point.rate, 10);
  const SentRequest& first = made.requests.front().request;
  EXPECT_EQ(made.requests.front().cell_id, row->cell_id.str());
  EXPECT_EQ(first.scheduled_ns, 0);
  EXPECT_NEAR(static_cast<double>(first.sent_ns), 500e6, 10);
  EXPECT_THAT(first.token_us, ElementsAre(540'000, 550'000, 560'000));
  EXPECT_EQ(made.requests[20].request.status, "timeout");
  EXPECT_EQ(made.requests[20].request.error_class, "ReadTimeout");
}

TEST(ServedRequests, OneWithoutItsTimesLeavesNoRunUnderLoad) {
  std::vector<ServedRequest> requests = timed(50);
  requests[3].times.reset();
  const ImportedRows made = load_rows_of(requests);
  EXPECT_TRUE(made.requests.empty());
  EXPECT_EQ(std::ranges::count(made.rows, Phase::kLoad, &Row::phase), 0);
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
