// The contrast's error rates, by simulation with fixed seeds: the share of false claims, and the
// share of real differences found.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

struct Rates {
  int differs = 0;
  int equivalent = 0;
  int covered = 0;  // the ratio's interval holds the true ratio
};

// `trials` one-stratum studies of 30 repetitions in which the second arm takes `ratio` times as
// long.
Rates simulate(int trials, double ratio, double noise, double spike_rate) {
  AnalysisOptions options;
  options.resamples = 1000;
  Rates rates;
  for (int trial = 0; trial < trials; ++trial) {
    SyntheticBundle bundle(static_cast<uint64_t>(trial) + 1000);
    bundle.add({.arm = "eager", .noise = noise, .spike_rate = spike_rate});
    bundle.add({.arm = "static", .mean_ms = 10 * ratio, .noise = noise, .spike_rate = spike_rate});
    const Contrast contrast = analyze(bundle.build(), options, nullptr)->contrasts.at(0);
    rates.differs += contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
    rates.equivalent += contrast.verdict == Verdict::kEquivalent;
    rates.covered += contrast.ratio_interval->contains(ratio);
  }
  testing::Test::RecordProperty("differs", rates.differs);
  testing::Test::RecordProperty("equivalent", rates.equivalent);
  testing::Test::RecordProperty("covered", rates.covered);
  testing::Test::RecordProperty("trials", trials);
  return rates;
}

TEST(Calibration, OneArmAgainstItselfDiffersNoMoreOftenThanTheNominalRate) {
  const Rates rates = simulate(1000, 1, 0.05, 0.05);
  EXPECT_LE(rates.differs, 50);
}

TEST(Calibration, APlantedFivePercentIsFound) {
  const Rates rates = simulate(200, 1.05, 0.03, 0);
  EXPECT_GE(rates.differs, 196);
  EXPECT_GE(rates.covered, 180);
}

TEST(Calibration, ADifferenceOfTheMarginIsRarelyCalledEquivalent) {
  const Rates rates = simulate(1000, 1.03, 0.03, 0);
  EXPECT_LE(rates.equivalent, 64);  // 5 % and two standard errors
  EXPECT_GE(rates.covered, 920);
}

TEST(Calibration, ArmsOfOneSpeedAreMostlyCalledEquivalentWhenPrecise) {
  const Rates rates = simulate(200, 1, 0.02, 0);
  EXPECT_GE(rates.equivalent, 190);
}

// Claims on two arms of one speed, each in five processes that differ by 20 %. Tests on single
// rows, thirty of each arm, would make such a claim in one bundle of two or three.
struct FalseClaims {
  int alternative = 0;  // p50 or p95 would choose the other arm
  int disagreement = 0;
  int sensitive = 0;
  int p50 = 0;  // the interval of the ratio of medians excludes 1
};

bool has_kind(const Findings& findings, const char* kind) {
  return std::ranges::find(findings.named, kind, &Finding::kind) != findings.named.end();
}

FalseClaims claims_of_equal_arms(int trials, const std::string& order, double spike_rate) {
  AnalysisOptions options;
  options.resamples = 200;
  FalseClaims claims;
  for (int trial = 0; trial < trials; ++trial) {
    SyntheticBundle bundle(static_cast<uint64_t>(trial) + 7000);
    SyntheticCell cell{.arm = "eager", .noise = 0.05, .spike_rate = spike_rate};
    cell.processes = 5;
    cell.process_shift = 0.2;
    bundle.add(cell);
    cell.arm = "static";
    bundle.add_compiled(cell, "false");
    if (order != "interleaved") bundle.run_by_cells(order);
    const Findings findings = *analyze(bundle.build(), options, nullptr);
    claims.alternative += !findings.decisions.at(0).alternatives.empty();
    claims.disagreement += has_kind(findings, "mean_median_disagreement");
    claims.sensitive += has_kind(findings, "ranking_sensitive");
    claims.p50 += !findings.tails.at(1).ratio_interval->contains(1);
  }
  return claims;
}

TEST(Calibration, EqualArmsOfProcessesThatDifferAreSeldomToldApartByAnyFigure) {
  constexpr int kTrials = 400;
  for (const char* order : {"interleaved", "shuffled"}) {
    for (const double spike_rate : {0.0, 0.05}) {
      const FalseClaims claims = claims_of_equal_arms(kTrials, order, spike_rate);
      for (const auto& [name, count] : {std::pair{"alternative", claims.alternative},
                                        {"disagreement", claims.disagreement},
                                        {"sensitive", claims.sensitive},
                                        {"p50", claims.p50}}) {
        RecordProperty(fmt::format("{}_{}_{}", name, order, spike_rate), count);
        EXPECT_LE(count, kTrials * 0.05) << name << ", " << order << ", spikes " << spike_rate;
      }
    }
  }
}

}  // namespace
}  // namespace assay
