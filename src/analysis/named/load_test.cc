// Servers under load, on bundles whose requests are made by code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "analysis/of_kind.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRuns = 5;

// Two servers at a point of ten requests a second for ten seconds; "other" takes half as long.
struct Servers {
  explicit Servers(const std::string& scenario = "prompts, 10 a second", double rate = 10)
      : bundle(5) {
    Json& study = bundle.raw().manifest["study"];
    study["arms"] = {"base", "other"};
    study["baseline"] = "base";
    study["load"]["slo"] = record_to_json(ServiceBounds{.ttft_ms = 500});
    offer(scenario, rate);
  }

  // A further point, with its cells and requests.
  void offer(const std::string& scenario, double rate) {
    OfferedLoad load{.point = {.rate = rate}, .duration_s = 10};
    bundle.raw().manifest["study"]["load"]["offered"][scenario] = record_to_json(load);
    for (const auto& [arm, ms] : {std::pair("base", 40), std::pair("other", 20)}) {
      const std::string id = bundle.add({.arm = arm,
                                         .phase = Phase::kLoad,
                                         .scenario = scenario,
                                         .mean_ms = static_cast<double>(ms),
                                         .noise = 0.01,
                                         .repetitions = kRuns,
                                         .new_tokens = 2});
      for (int64_t run = 0; run < kRuns; ++run) add_requests(id, run, rate, ms);
    }
  }

  void add_requests(const std::string& id, int64_t run, double rate, int64_t ms) {
    const auto count = std::llround(10 * rate) - 1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t due = std::llround(static_cast<double>(i + 1) / rate * 1e9);
      const int64_t last = due + (ms + run % 2) * kMs;  // no two runs are quite the same
      bundle.raw().requests.push_back({id,
                                       run,
                                       {.number = i,
                                        .scheduled_ns = due,
                                        .sent_ns = due,
                                        .first_token_ns = last - 5 * kMs,
                                        .last_token_ns = last,
                                        .end_ns = last,
                                        .prompt_tokens = 5,
                                        .new_tokens = 2,
                                        .tokens = 2,
                                        .token_us = {(ms - 5) * 1000, ms * 1000}}});
    }
  }

  // The middle request of the arm's first run.
  SentRequest& request_of(const std::string& arm) {
    const auto of_arm = [&](const LoadedRequest& one) {
      return one.cell_id.find(arm) != std::string::npos && one.request.number == 50;
    };
    return std::ranges::find_if(bundle.raw().requests, of_arm)->request;
  }

  Findings analyzed() {
    AnalysisOptions options;
    options.resamples = 300;
    return *analyze(bundle.build(), options, nullptr);
  }
  SyntheticBundle bundle;
};

// Why the point's decision is void; empty: it isn't.
std::string void_reason(const Findings& findings) {
  for (const Decision& decision : findings.decisions) {
    if (decision.kind == Decision::Kind::kVoid) return decision.void_because;
  }
  return "";
}

TEST(NamedLoad, ServersThatServeAllAreCompared) {
  const Findings findings = Servers().analyzed();
  ASSERT_EQ(findings.load.points.size(), 2u);
  const LoadFigures& base = findings.load.points[0];
  EXPECT_EQ(base.runs, kRuns);
  EXPECT_NEAR(base.requests_per_s.mean, 10, 0.2);
  EXPECT_NEAR(base.latency_ms.mean->mean, 40.4, 0.05);  // 40 and 41 ms by turns
  EXPECT_EQ(base.kept, BoundsKept::kYes);
  ASSERT_EQ(findings.contrasts.size(), 1u);
  EXPECT_EQ(findings.contrasts[0].verdict, assay::Verdict::kFaster);
  EXPECT_EQ(void_reason(findings), "");
}

TEST(NamedLoad, ARequestThatFailedVoidsTheComparison) {
  Servers servers;
  SentRequest& failed = servers.request_of("other");
  failed.status = "error";
  failed.error_class = "stream_cut";
  const Findings findings = servers.analyzed();
  const auto named = of_kind(findings, "requests_failed");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_THAT(named[0].text, HasSubstr("1 stream_cut"));
  ASSERT_EQ(findings.contrasts.size(), 1u);
  EXPECT_THAT(void_reason(findings), HasSubstr("requests that failed"));
}

TEST(NamedLoad, TheEnginesOwnServerBesideItInProcessShowsItsCost) {
  EXPECT_THAT(of_kind(Servers().analyzed(), "server_cost"), testing::IsEmpty());
  for (const bool served_is_base : {true, false}) {
    Servers servers;
    const std::string served = served_is_base ? "base" : "other";
    for (Row& row : servers.bundle.raw().rows) {
      if (row.arm == served) row.backend = "http";
    }
    EXPECT_THAT(of_kind(servers.analyzed(), "server_cost"), testing::IsEmpty()) << "any server";
    for (const Row& row : servers.bundle.raw().rows) {
      if (row.arm != served) continue;
      servers.bundle.reported(row.cell_id)["actual"]["server"]["server"] = "assay";
    }
    const auto named = of_kind(servers.analyzed(), "server_cost");
    ASSERT_EQ(named.size(), 1u);
    EXPECT_EQ(named[0].arm, served);
    EXPECT_NEAR(named[0].size, served_is_base ? 1 : -0.5, 0.05) << "twice as long, or half";
    EXPECT_THAT(named[0].text,
                testing::MatchesRegex("a request over HTTP .* takes [0-9.]+ times "
                                      "\\[[0-9.]+, [0-9.]+\\] as long as one to the engine in "
                                      "process \\((base|other)\\): .*"));
  }
}

TEST(NamedLoad, AQueueThatGrowsInMostRunsKeepsNoBound) {
  Servers servers;
  for (LoadedRequest& one : servers.bundle.raw().requests) {
    if (one.cell_id.find("other") == std::string::npos || one.run > 2) continue;
    SentRequest& request = one.request;  // takes 5 ms longer than the one before it
    const int64_t more = 5 * kMs * request.number;
    *request.first_token_ns += more;
    *request.last_token_ns += more;
    request.end_ns += more;
  }
  const Findings findings = servers.analyzed();
  const auto named = of_kind(findings, "queue_grows");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_DOUBLE_EQ(named[0].size, 0.6);
  EXPECT_EQ(findings.load.points[1].kept, BoundsKept::kNo);
  EXPECT_THAT(void_reason(findings), HasSubstr("a queue that grows"));
}

TEST(NamedLoad, PointsOfOneServerAreASeries) {
  Servers servers;
  servers.offer("prompts, 20 a second", 20);
  servers.offer("chats, 10 a second", 10);
  const Findings findings = servers.analyzed();
  const auto series = load_series(findings.load, findings.strata, "base");
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].size(), 2u);
  EXPECT_EQ(series[1].size(), 1u);
}

TEST(NamedLoad, APointOfWhichAllRunsAreLostIsToldWithTheirClasses) {
  Servers servers;
  for (int64_t run = 0; run < kRuns; ++run) {
    servers.bundle.lose("c001-other-load-prompts, 10 a second", run,
                        run == 0 ? RowStatus::kCrash : RowStatus::kFalseSuccess,
                        run == 0 ? "SIGKILL" : "sent_late");
  }
  const Findings findings = servers.analyzed();
  EXPECT_EQ(findings.load.points.size(), 1u);
  ASSERT_EQ(findings.load.lost.size(), 1u);
  EXPECT_EQ(findings.load.lost[0].arm, "other");
  EXPECT_EQ(findings.load.lost[0].runs,
            (std::map<std::string, int64_t>{{"SIGKILL", 1}, {"sent_late", 4}}));
}

TEST(NamedLoad, ALoadThatNobodyCouldOfferGivesNoFigure) {
  for (const Json& wrong : {Json{{"rate", 1e300}}, Json{{"rate", -1}}, Json{{"concurrency", 0}},
                            Json{{"rate", 1}, {"concurrency", 1}}, Json::object()}) {
    Servers servers;
    servers.bundle.raw().manifest["study"]["load"]["offered"]["prompts, 10 a second"]["point"] =
        wrong;
    EXPECT_TRUE(servers.analyzed().load.points.empty()) << wrong.dump();
  }
}

}  // namespace
}  // namespace assay
