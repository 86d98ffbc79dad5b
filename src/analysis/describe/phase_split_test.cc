// Tests the worth of a prefill gain end to end, on latencies whose answer is known.
#include "analysis/describe/phase_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// Prefill of 20 ms against `prefill`, decode of 64 tokens at 1 ms against `token` ms.
Findings study(double prefill, double token, double noise = 0.005) {
  SyntheticBundle bundle(51);
  for (const auto& [arm, ms, each] : {std::tuple{"eager", 20.0, 1.0}, {"static", prefill, token}}) {
    bundle.add({.arm = arm, .mean_ms = ms, .noise = noise});
    bundle.add({.arm = arm, .phase = Phase::kKvDecode, .mean_ms = 64 * each, .noise = noise});
  }
  AnalysisOptions options;
  options.resamples = 1000;
  return *analyze(bundle.build(), options, nullptr);
}

const SplitAt& at(const PhaseSplit& split, int64_t tokens) {
  return *std::ranges::find(split.at, tokens, &SplitAt::new_tokens);
}

TEST(PhaseSplit, TheGainIsASmallerShareTheMoreIsDecoded) {
  const PhaseSplit split = study(10, 1).splits.at(0);
  EXPECT_EQ(split.arm, "static");
  EXPECT_NEAR(split.gain_ms, 10, 0.1);
  EXPECT_TRUE(split.gain_interval->contains(split.gain_ms));
  EXPECT_NEAR(at(split, 1).prefill_share, 10.0 / 21, 0.005);
  EXPECT_NEAR(at(split, 64).prefill_share, 10.0 / 84, 0.005);
  EXPECT_NEAR(at(split, 512).prefill_share, 10.0 / 532, 0.005);
  EXPECT_FALSE(at(split, 64).extrapolated);
  EXPECT_TRUE(at(split, 512).extrapolated);
  EXPECT_NEAR(at(split, 64).ratio, 74.0 / 84, 0.01);
  // 10 / (20 + n) < 3 % from n = 313 on.
  EXPECT_NEAR(*split.stops_mattering, 10 / 0.03 - 20, 5);
  EXPECT_LT(*split.stops_interval->low, *split.stops_mattering);
  EXPECT_GT(*split.stops_interval->high, *split.stops_mattering);
}

TEST(PhaseSplit, ASlowerDecodeUsesTheGainUp) {
  const PhaseSplit split = study(10, 1.25).splits.at(0);
  EXPECT_NEAR(*split.breaks_even, 40, 1);
  EXPECT_LT(*split.even_interval->low, 40);
  EXPECT_GT(*split.even_interval->high, 40);
  EXPECT_LT(at(split, 32).ratio, 1);
  EXPECT_GT(at(split, 64).ratio, 1);
}

TEST(PhaseSplit, AFasterDecodeNeverUsesItUp) {
  const PhaseSplit split = study(10, 0.8).splits.at(0);
  EXPECT_FALSE(split.breaks_even);
  EXPECT_TRUE(split.stops_mattering);
}

TEST(PhaseSplit, WithoutASureGainNothingStopsMattering) {
  const PhaseSplit none = study(20, 1.2).splits.at(0);
  EXPECT_FALSE(none.stops_mattering);
  EXPECT_FALSE(none.breaks_even);
  EXPECT_FALSE(study(25, 1).splits.at(0).stops_mattering);
}

TEST(PhaseSplit, ABreakEvenThatNoiseMayPutAnywhereHasNoUpperEnd) {
  const PhaseSplit split = study(10, 1.01, 0.04).splits.at(0);
  ASSERT_TRUE(split.breaks_even);
  EXPECT_FALSE(split.even_interval->high);
  EXPECT_TRUE(split.stops_interval->high);
}

TEST(PhaseSplit, NeedsBothPhasesAndCountsNoEndToEndRow) {
  SyntheticBundle bundle(52);
  for (const std::string arm : {"eager", "static"}) {
    bundle.add({.arm = arm});
    bundle.add({.arm = arm, .phase = Phase::kE2eKv, .mean_ms = 80});
  }
  AnalysisOptions options;
  options.resamples = 200;
  EXPECT_TRUE(analyze(bundle.build(), options, nullptr)->splits.empty());
}

}  // namespace
}  // namespace assay
