// The contrast's error rates, by simulation with fixed seeds: how often it claims what isn't so,
// and how often it finds what is.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace assay
