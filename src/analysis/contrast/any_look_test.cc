// A stratum that was looked at while it ran is judged by an interval that holds at any look.
#include "analysis/contrast/any_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "stats/confidence_sequence.h"
#include "stats/summary.h"

namespace assay {
namespace {

constexpr int64_t kRounds = 8;
constexpr int64_t kRows = 4;  // a round

// Three arms of one stratum: eager, then `second` and `third` times as slow.
struct Looked {
  Looked(double second, double third, double noise) {
    const double slower[] = {1, second, third};
    const char* names[] = {"eager", "static", "any"};
    for (int a = 0; a < 3; ++a) {
      cells.push_back(bundle.add({.arm = names[a],
                                  .mean_ms = 10 * slower[a],
                                  .noise = noise,
                                  .repetitions = kRounds * kRows,
                                  .processes = kRounds}));
    }
    bundle.raw().manifest["study"]["arms"] = {"eager", "static", "any"};
  }
  void say_it_was_looked_at() {
    for (const std::string& cell : cells) {
      bundle.evidence(cell)["stopping"] = {{"rounds", kRounds}, {"pairs", Json::array()}};
    }
  }
  Findings findings() {
    AnalysisOptions options;
    options.resamples = 500;
    return *analyze(bundle.build(), options, nullptr);
  }

  SyntheticBundle bundle{11};
  std::vector<std::string> cells;
};

TEST(AnyLook, IntervalsAreThoseThatHoldAtAnyLookForAllPairsTogether) {
  Looked looked(1.1, 1.2, 0.05);
  EXPECT_FALSE(looked.findings().contrasts.at(0).any_look);
  EXPECT_FALSE(looked.findings().combined.empty());
  looked.say_it_was_looked_at();
  const Findings findings = looked.findings();
  const Contrast& contrast = findings.contrasts.at(0);
  ASSERT_TRUE(contrast.any_look);
  ASSERT_EQ(contrast.unit, ContrastUnit::kProcesses);
  std::vector<double> log_ratios(kRounds);
  for (int64_t round = 0; round < kRounds; ++round) {
    double eager = 0;
    double arm = 0;
    for (int64_t row = 0; row < kRounds * kRows; ++row) {
      const Row& of_eager = looked.bundle.row(looked.cells[0], row);
      if (of_eager.process != looked.bundle.row(looked.cells[0], round * kRows).process) continue;
      eager += *of_eager.latency_ms;
      arm += *looked.bundle.row(looked.cells[1], row).latency_ms;
    }
    log_ratios[static_cast<size_t>(round)] = std::log(arm / eager);
  }
  const auto expected = stats::anytime_interval(log_ratios, 0.05 / 3);
  EXPECT_NEAR(contrast.ratio, std::exp(*stats::mean(log_ratios)), 1e-12);
  EXPECT_NEAR(contrast.ratio_interval->low, std::exp(expected->low), 1e-12);
  EXPECT_NEAR(contrast.ratio_interval->high, std::exp(expected->high), 1e-12);
  EXPECT_FALSE(contrast.test);
  EXPECT_FALSE(contrast.tost);
  EXPECT_FALSE(contrast.typical);
  EXPECT_FALSE(contrast.minimum_detectable);
  EXPECT_TRUE(findings.combined.empty());
}

TEST(AnyLook, VerdictsAndTheDecisionFollowFromTheIntervals) {
  Looked looked(1.5, 1.6, 0.02);
  looked.say_it_was_looked_at();
  const Findings findings = looked.findings();
  EXPECT_EQ(findings.contrasts.at(0).verdict, Verdict::kSlower);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kBest);
  EXPECT_EQ(findings.decisions.at(0).arm, "eager");

  Looked equal(1, 1, 0.005);
  equal.say_it_was_looked_at();
  EXPECT_EQ(equal.findings().contrasts.at(0).verdict, Verdict::kEquivalent);
  EXPECT_EQ(equal.findings().decisions.at(0).kind, Decision::Kind::kNoDifference);
}

// A fixed number of rounds would tell them apart; a look at every round may not.
TEST(AnyLook, WhatOnlyAFixedNumberOfRoundsShowsIsNotDecided) {
  Looked looked(1.03, 1.5, 0.05);
  const Verdict fixed = looked.findings().contrasts.at(0).verdict;
  looked.say_it_was_looked_at();
  const Findings findings = looked.findings();
  EXPECT_EQ(fixed, Verdict::kSlower);
  EXPECT_EQ(findings.contrasts.at(0).verdict, Verdict::kInconclusive);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kUndecided);
}

}  // namespace
}  // namespace assay
