// A stratum that was looked at while it ran is judged by an interval that holds at any look.
#include "analysis/contrast/any_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "stats/samples/summary.h"
#include "stats/sequential/confidence_sequence.h"

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
  void say_it_was_looked_at(std::optional<double> margin = {}) {
    for (const std::string& cell : cells) {
      Json& stopping = bundle.evidence(cell)["stopping"];
      stopping = {{"rounds", kRounds}, {"pairs", Json::array()}};
      if (margin) stopping["margin"] = *margin;
    }
  }
  Findings findings(AnalysisOptions options = {}) {
    options.resamples = 500;
    return *analyze(bundle.build(), options, nullptr);
  }

  SyntheticBundle bundle{11};
  std::vector<std::string> cells;
};

// A stratum that ended early, beside one whose rows hold a slow call of the one arm or of both.
Contrast beside_slow_calls(bool of_both) {
  SyntheticBundle bundle(12);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static"};
  for (const std::string scenario : {"s0", "s1"}) {
    for (const std::string arm : {"eager", "static"}) {
      const std::string cell = bundle.add({.arm = arm,
                                           .scenario = scenario,
                                           .mean_ms = arm == "eager" ? 10.0 : 9.3,
                                           .noise = 0.01,
                                           .repetitions = kRounds * kRows,
                                           .processes = kRounds});
      bundle.evidence(cell)["stopping"] = {{"rounds", kRounds}, {"pairs", Json::array()}};
      if (scenario == "s1" && (of_both || arm == "static")) *bundle.row(cell, 9).latency_ms *= 5;
    }
  }
  AnalysisOptions options;
  options.resamples = 500;
  return analyze(bundle.build(), options, nullptr)->contrasts.at(0);
}

TEST(AnyLook, SlowCallsOfOneArmThatAnotherStratumShowsLeaveItOpen) {
  const Contrast both = beside_slow_calls(true);
  EXPECT_EQ(both.verdict, Verdict::kFaster);
  EXPECT_EQ(both.unseen_slow_factor, 1);
  const Contrast one = beside_slow_calls(false);
  ASSERT_TRUE(one.any_look);
  EXPECT_EQ(one.verdict, Verdict::kInconclusive);
  EXPECT_EQ(one.slow_arm, "static");
  EXPECT_NEAR(one.ratio_interval->high, both.ratio_interval->high * one.unseen_slow_factor, 1e-9);
}

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
  const auto expected = stats::confirmed_interval(log_ratios, 0.05 / 3);
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

TEST(AnyLook, TheMarginIsThatOfTheStudyUnlessOneIsAskedFor) {
  Looked equal(1, 1, 0.005);
  equal.say_it_was_looked_at(1e-4);
  const auto verdict = [&](const AnalysisOptions& options) {
    return equal.findings(options).contrasts.at(0).verdict;
  };
  EXPECT_EQ(verdict({}), Verdict::kInconclusive);
  EXPECT_EQ(verdict({.margin = 0.03, .margin_asked = true}), Verdict::kEquivalent);
}

// The last process of a cell serves fewer repetitions than the others.
TEST(AnyLook, RoundsOfUnequalLengthCountAlike) {
  Looked looked(1.1, 1.2, 0.05);
  looked.say_it_was_looked_at();
  auto& rows = looked.bundle.raw().rows;
  std::erase_if(rows, [](const Row& row) { return row.repetition >= kRounds * kRows - 2; });
  const auto mean_of = [&](const std::string& cell, int64_t round) {
    std::vector<double> ms;
    for (const Row& row : rows) {
      if (row.cell_id == cell && row.process == round) ms.push_back(*row.latency_ms);
    }
    return *stats::mean(ms);
  };
  std::vector<double> log_ratios;
  for (int64_t round = 0; round < kRounds; ++round) {
    log_ratios.push_back(
        std::log(mean_of(looked.cells[1], round) / mean_of(looked.cells[0], round)));
  }
  const Contrast contrast = looked.findings().contrasts.at(0);
  EXPECT_NEAR(contrast.ratio, std::exp(*stats::mean(log_ratios)), 1e-12);
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
