// Ranges of few processes, and their effect on a verdict.
#include "analysis/contrast/process_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::Eq;

TEST(ProcessRange, OfPairedArmsIsThatOfTheRoundsElseOfTheExtremes) {
  const std::vector<double> arm = {2, 9};
  const std::vector<double> baseline = {4, 10};
  const auto paired = ratio_range(arm, baseline, true);
  EXPECT_THAT(std::pair(paired->low, paired->high), Eq(std::pair(0.5, 0.9)));
  const auto apart = ratio_range(arm, baseline, false);
  EXPECT_THAT(std::pair(apart->low, apart->high), Eq(std::pair(0.2, 2.25)));
  const auto difference = difference_range(arm, baseline, true);
  EXPECT_THAT(std::pair(difference->low, difference->high), Eq(std::pair(-2.0, -1.0)));
  EXPECT_FALSE(ratio_range({&arm[0], 1}, {&baseline[0], 1}, true)) << "one process has no range";
}

TEST(ProcessRange, BearsOutAVerdictThatItAgreesWithWholly) {
  const auto agrees = [](double low, double high, Verdict verdict) {
    return bears_out(stats::Interval{low, high}, verdict, 0.03);
  };
  EXPECT_TRUE(agrees(0.90, 0.97, Verdict::kFaster));
  EXPECT_FALSE(agrees(0.90, 0.975, Verdict::kFaster)) << "within the margin of 1 / 1.03";
  EXPECT_TRUE(agrees(1.04, 1.2, Verdict::kSlower));
  EXPECT_FALSE(agrees(1.02, 1.2, Verdict::kSlower));
  EXPECT_FALSE(agrees(0.90, 0.97, Verdict::kSlower));
  EXPECT_TRUE(agrees(0.98, 1.02, Verdict::kEquivalent));
  EXPECT_FALSE(agrees(0.96, 1.02, Verdict::kEquivalent));
  EXPECT_TRUE(agrees(0.1, 10, Verdict::kInconclusive));
  EXPECT_FALSE(bears_out(std::nullopt, Verdict::kFaster, 0.03));
}

// Rows of two arms of so many processes, side by side, at these ratios round by round; a thousandth
// of noise.
Findings rounds_at(const std::vector<double>& ratios) {
  SyntheticBundle bundle(7);
  const auto processes = static_cast<int64_t>(ratios.size());
  const auto cell = [&](const std::string& arm) {
    return bundle.add(
        {.arm = arm, .noise = 0, .repetitions = 5 * processes, .processes = processes});
  };
  const std::string base = cell("eager");
  const std::string arm = cell("static");
  for (int64_t r = 0; r < 5 * processes; ++r) {
    const double wobble = 1 + 0.001 * std::sin(static_cast<double>(r * r));
    bundle.row(base, r).latency_ms = 10 * wobble;
    bundle.row(arm, r).latency_ms = 10 * ratios[static_cast<size_t>(r / 5)] / wobble;
  }
  return *analyze(bundle.build(), {}, nullptr);
}

// The test alone called the first two, on one degree of freedom.
TEST(ProcessRange, AVerdictOfTwoProcessesNeedsIt) {
  const auto verdict = [](const std::vector<double>& ratios) {
    const Contrast contrast = rounds_at(ratios).contrasts.at(0);
    EXPECT_LT(contrast.p_holm.value_or(1), 0.05) << "the test is sure";
    EXPECT_TRUE(contrast.ratio_process_range);
    return contrast.verdict;
  };
  EXPECT_EQ(verdict({1.0280, 1.0286}), Verdict::kInconclusive);
  EXPECT_EQ(verdict({0.9719, 0.9725}), Verdict::kInconclusive);
  EXPECT_EQ(verdict({0.5, 0.505}), Verdict::kFaster);
  EXPECT_EQ(verdict({2, 2.02}), Verdict::kSlower);
}

TEST(ProcessRange, NothingOfTwoProcessesHasAnInterval) {
  const Findings findings = rounds_at({0.8, 0.82});
  for (const Contrast& contrast : findings.contrasts) {
    EXPECT_FALSE(contrast.ratio_interval || contrast.difference_interval_ms);
    ASSERT_TRUE(contrast.typical);
    EXPECT_FALSE(contrast.typical->interval);
    EXPECT_NEAR(contrast.typical->process_range->low, 0.8, 0.002);
    EXPECT_NEAR(contrast.typical->process_range->high, 0.82, 0.002);
    EXPECT_NEAR(contrast.difference_process_range_ms->low, -2, 0.01);
    EXPECT_NEAR(contrast.difference_process_range_ms->high, -1.8, 0.01);
  }
  EXPECT_TRUE(rounds_at({0.8, 0.82, 0.81, 0.815}).contrasts.at(0).typical->interval);
}

}  // namespace
}  // namespace assay
