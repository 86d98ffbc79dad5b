// Verdicts agree with what is shown beside them.
#include "analysis/contrast/verdict.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Verdict judged(const ShownRatio& shown, const AdjustedTests& p) {
  return verdict_of(shown, p, 0.05, 0.03);
}

TEST(VerdictOf, ADifferenceNeedsItsTestAndAnIntervalWithoutOne) {
  EXPECT_EQ(judged({1.1, stats::Interval{1.05, 1.15}}, {0.01, 1.0}), Verdict::kSlower);
  EXPECT_EQ(judged({0.9, stats::Interval{0.85, 0.95}}, {0.01, 1.0}), Verdict::kFaster);
  EXPECT_EQ(judged({1.1, stats::Interval{0.99, 1.2}}, {0.01, 1.0}), Verdict::kInconclusive);
  EXPECT_EQ(judged({1.1, stats::Interval{1.05, 1.15}}, {0.06, 1.0}), Verdict::kInconclusive);
  EXPECT_EQ(judged({1.1, stats::Interval{1.05, 1.15}}, {{}, {}}), Verdict::kInconclusive);
  EXPECT_EQ(judged({1.1}, {0.01, 1.0}), Verdict::kSlower) << "no interval: the test stands alone";
}

TEST(VerdictOf, EquivalenceNeedsItsTestAndAnIntervalWithinTheMargin) {
  EXPECT_EQ(judged({1.001, stats::Interval{0.99, 1.02}}, {0.5, 0.01}), Verdict::kEquivalent);
  EXPECT_EQ(judged({1.001, stats::Interval{0.871, 1.036}}, {0.5, 0.01}), Verdict::kInconclusive);
  EXPECT_EQ(judged({1.02, stats::Interval{1.005, 1.035}}, {0.01, 0.04}), Verdict::kSlower)
      << "not within the margin, and above 1";
  EXPECT_EQ(judged({1.02, stats::Interval{1.015, 1.025}}, {0.01, 0.01}), Verdict::kEquivalent);
}

TEST(VerdictOf, TooFewProcessesNeedTheirRangeToo) {
  const auto few = [](double low, double high, const AdjustedTests& p) {
    return judged({.ratio = 1.1, .interval = {}, .too_few = true, .range = {{low, high}}}, p);
  };
  EXPECT_EQ(few(1.05, 1.2, {0.01, {}}), Verdict::kSlower);
  EXPECT_EQ(few(1.02, 1.2, {0.01, {}}), Verdict::kInconclusive) << "not beyond the margin";
  EXPECT_EQ(judged({.ratio = 1.1, .interval = {}, .too_few = true}, {0.01, {}}),
            Verdict::kInconclusive);
}

TEST(HolmOf, LeavesAbsentValuesInTheirPlaces) {
  const std::optional<double> p[] = {0.03, std::nullopt, 0.01};
  const auto adjusted = holm_of(p);
  ASSERT_EQ(adjusted.size(), 3u);
  EXPECT_DOUBLE_EQ(*adjusted[0], 0.03);
  EXPECT_FALSE(adjusted[1]);
  EXPECT_DOUBLE_EQ(*adjusted[2], 0.02);
  EXPECT_DOUBLE_EQ(*holm_of(p, 2)[2], 0.04) << "two that were lost count";
}

}  // namespace
}  // namespace assay
