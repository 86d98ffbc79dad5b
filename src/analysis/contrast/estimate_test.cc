// Estimates of times by hand, alone and over strata.
#include "analysis/contrast/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/contrast/typical.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// Times of one arm, a list a process; all as long.
using Times = std::vector<std::vector<double>>;

Estimate estimated(const Times& arm, const Times& other) {
  SyntheticBundle made(1);
  const auto processes = static_cast<int64_t>(arm.size());
  const auto each = static_cast<int64_t>(arm[0].size());
  for (const auto& [name, times] : {std::pair{"other", &other}, {"arm", &arm}}) {
    const std::string cell =
        made.add({.arm = name, .repetitions = processes * each, .processes = processes});
    for (int64_t i = 0; i < processes * each; ++i) {
      made.row(cell, i).latency_ms =
          (*times)[static_cast<size_t>(i / each)][static_cast<size_t>(i % each)];
    }
  }
  const Bundle bundle = made.build();
  const Samples samples = group_rows(bundle, {"other", "arm"}).value();
  const GroupPair pairs[] = {{1, 0}};
  return estimates_of(samples, Units(samples, true), pairs).at(0);
}

TEST(Estimate, OfProportionalTimesThatDontOverlapIsTheirRatioWithoutError) {
  const Estimate of = estimated({{22, 24}, {26, 28}}, {{11, 12}, {13, 14}});
  EXPECT_EQ(of.unit, ContrastUnit::kProcesses);
  EXPECT_TRUE(of.paired);
  EXPECT_NEAR(of.log_ratio, std::log(2), 1e-12);
  EXPECT_TRUE(!of.error || of.error->value < 1e-12);
}

// Means of 18 and 15; rounds differ by 4.5 and 1.5: by 3 with an error of 1.5.
TEST(Estimate, OfTimesThatOverlapHasTheErrorOfTheDifference) {
  const Estimate of = estimated({{9, 30}, {16, 17}}, {{10, 20}, {15, 15}});
  EXPECT_NEAR(of.log_ratio, std::log(1.2), 1e-12);
  ASSERT_TRUE(of.error);
  EXPECT_NEAR(of.log_ratio / of.error->value, 3 / 1.5, 1e-12);
  EXPECT_TRUE(of.too_few);
  EXPECT_NEAR(of.range->low, 16.5 / 15, 1e-12);
  EXPECT_NEAR(of.range->high, 19.5 / 15, 1e-12);
  const Estimate back = inverted(of);
  EXPECT_EQ(back.log_ratio, -of.log_ratio);
  EXPECT_NEAR(back.range->low, 15 / 19.5, 1e-12);
}

// Six of 200 calls took a hundred times their time: t of the difference is sqrt(6), and by an error
// relative to the arm's own mean it would be 4.5.
TEST(Estimate, AFewStoppedCallsAreNoProof) {
  Times arm(20);
  Times other(20);
  for (size_t p = 0; p < 20; ++p) {
    for (size_t i = 0; i < 10; ++i) {
      const double wobble = 0.01 * static_cast<double>((3 * i + p) % 7);
      other[p].push_back(1 + wobble);
      arm[p].push_back(i == 0 && p < 6 ? 100 : 1.06 - wobble);
    }
  }
  const Estimate of = estimated(arm, other);
  ASSERT_TRUE(of.error);
  EXPECT_LT(of.log_ratio / of.error->value, 3);
}

TEST(Estimate, OfTypicalCallsIsNotMovedByAStoppedCall) {
  const std::vector<PairedProcess> rounds = {{0, {10, 10, 10}, {11, 11, 5000}},
                                             {1, {10, 10, 4000}, {11, 11, 11}}};
  EXPECT_NEAR(typical_estimate(rounds, true).log_ratio, std::log(1.1), 1e-12);
  const std::vector<PairedProcess> one = {{0, {10, 10, 4000}, {11, 11, 11}}};
  EXPECT_EQ(typical_estimate(one, false).shares[0].values.size(), 3u);
}

// Two rounds that are off by 0.02: an error of 0.02 with one degree of freedom.
Estimate two_rounds(int64_t first) {
  Estimate of{.log_ratio = 0.3, .unit = ContrastUnit::kProcesses, .paired = true};
  of.error = stats::StandardError{0.02, 1};
  of.shares = {{{first, first + 1}, {0.02, -0.02}}};
  return of;
}

TEST(Estimate, StrataThatTheSameProcessesServedCountTogether) {
  const Estimate same[] = {two_rounds(0), two_rounds(0)};
  const Estimate together = combine(same);
  EXPECT_NEAR(together.log_ratio, 0.3, 1e-12);
  EXPECT_NEAR(together.error->value, 0.02, 1e-12);
  EXPECT_EQ(together.error->df, 1);
  const Estimate others[] = {two_rounds(0), two_rounds(2)};
  EXPECT_NEAR(combine(others).error->value, 0.02 / std::sqrt(2.0), 1e-12);
  EXPECT_EQ(combine(others).error->df, 3);
  EXPECT_FALSE(combine({}).why_absent.empty());
}

TEST(Estimate, IsShownWithItsIntervalMovedByWhatItsRowsMayLack) {
  Estimate of = two_rounds(0);
  of.error = stats::StandardError{0.02, 100};
  const stats::Interval plain = *shown(of).interval;
  of.beyond = {1, 1.2};
  EXPECT_DOUBLE_EQ(shown(of).interval->low, plain.low);
  EXPECT_DOUBLE_EQ(shown(of).interval->high, plain.high * 1.2);
  EXPECT_DOUBLE_EQ(shown(inverted(of)).interval->low, 1 / (plain.high * 1.2));
}

}  // namespace
}  // namespace assay
