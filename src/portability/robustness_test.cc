// Each band of the index on points that give it, and on points beside them that don't.
#include "portability/robustness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "stats/distributions/standard_normal.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

using testing::HasSubstr;

// `processes` values about a log ratio.
PerturbationPoint point(const std::string& name, double log_ratio, uint64_t seed,
                        double noise = 0.004, int processes = 8) {
  Random random(seed);
  std::vector<double> values;
  for (int i = 0; i < processes; ++i) {
    values.push_back(log_ratio + noise * stats::standard_normal(random));
  }
  Estimate of{.log_ratio = *stats::mean(values), .unit = ContrastUnit::kProcesses, .paired = true};
  if (const auto moments = stats::moments(values)) of.error = stats::error_of_mean(*moments);
  return {.name = name, .ratio = of};
}

RobustnessIndex index_at(double share) {
  const PerturbationPoint points[] = {point("first", -0.3, 1), point("same", -0.3, 2),
                                      point("other", -0.3 * share, 3)};
  return robustness_index("stack", points);
}

TEST(Robustness, BandsAreOfTheSmallestShare) {
  EXPECT_EQ(index_at(0.9).band, RobustnessBand::kRobust);
  EXPECT_EQ(index_at(0.7).band, RobustnessBand::kSensitive);
  EXPECT_EQ(index_at(0.3).band, RobustnessBand::kFragile);
  EXPECT_EQ(index_at(-0.3).band, RobustnessBand::kCatastrophic);
  // Each at its limit, and the next one beside it.
  EXPECT_EQ(band_of_index(0.8), RobustnessBand::kRobust);
  EXPECT_EQ(band_of_index(0.8 - 1e-9), RobustnessBand::kSensitive);
  EXPECT_EQ(band_of_index(0.5), RobustnessBand::kSensitive);
  EXPECT_EQ(band_of_index(0.5 - 1e-9), RobustnessBand::kFragile);
  EXPECT_EQ(band_of_index(0), RobustnessBand::kFragile);
  EXPECT_EQ(band_of_index(-1e-9), RobustnessBand::kCatastrophic);
  EXPECT_NEAR(*index_at(0.7).index, 0.7, 0.03);
}

TEST(Robustness, TheIntervalSaysWhichBandsAreAllowed) {
  const RobustnessIndex sure = index_at(0.9);
  ASSERT_TRUE(sure.interval);
  EXPECT_TRUE(sure.interval->contains(0.9)) << sure.interval->low << " " << sure.interval->high;
  EXPECT_EQ(sure.best, RobustnessBand::kRobust);
  EXPECT_EQ(sure.worst, RobustnessBand::kRobust);
  const PerturbationPoint points[] = {point("first", -0.3, 1, 0.05),
                                      point("other", -0.24, 3, 0.05)};
  const RobustnessIndex unsure = robustness_index("stack", points);
  EXPECT_NE(unsure.worst, unsure.best);
  EXPECT_EQ(unsure.band, RobustnessBand::kUndecided);
  // One value tells nothing of its own noise.
  const PerturbationPoint alone[] = {point("first", -0.3, 1), point("other", -0.3, 3, 0, 1)};
  const RobustnessIndex single = robustness_index("stack", alone);
  EXPECT_EQ(single.band, RobustnessBand::kUndecided);
  EXPECT_THAT(single.reason, HasSubstr("too few values"));
}

TEST(Robustness, TheUpperEndIsAdjustedForTheSmallestOfSeveralPoints) {
  const std::vector<PerturbationPoint> points = {
      point("first", -0.3, 1, 0.02), point("second", -0.3, 2, 0.02), point("third", -0.3, 3, 0.02)};
  const RobustnessIndex one = robustness_index("stack", std::span(points).first(2));
  EXPECT_EQ(*one.interval, *one.points[1].interval);
  const RobustnessIndex two = robustness_index("stack", points);
  const auto& a = *two.points[1].interval;
  const auto& b = *two.points[2].interval;
  EXPECT_EQ(a, *one.points[1].interval) << "a point's own is of it alone";
  EXPECT_EQ(two.interval->low, std::min(a.low, b.low));
  EXPECT_GT(two.interval->high, std::min(a.high, b.high))
      << "the smallest of two is below either more often than one of them is";
}

TEST(Robustness, LostRowsAreCatastrophic) {
  PerturbationPoint lost{.name = "other", .lost = "lost 3 of 40 rows of fast"};
  const PerturbationPoint points[] = {point("first", -0.3, 1), lost};
  const RobustnessIndex index = robustness_index("stack", points);
  EXPECT_EQ(index.band, RobustnessBand::kCatastrophic);
  EXPECT_EQ(index.reason, "other lost 3 of 40 rows of fast");
  EXPECT_FALSE(index.index);
  // Also beside a point that retains all of it, whose share is told.
  const PerturbationPoint with_same[] = {point("first", -0.3, 1), point("same", -0.3, 2), lost};
  const RobustnessIndex of_same = robustness_index("stack", with_same);
  EXPECT_EQ(of_same.band, RobustnessBand::kCatastrophic);
  EXPECT_NEAR(*of_same.index, 1, 0.05);
  EXPECT_EQ(robustness_index("stack", std::span(with_same).first(2)).band, RobustnessBand::kRobust);
}

TEST(Robustness, FewerThanTwoSurvivorsAreInvalid) {
  PerturbationPoint gone{.name = "other", .gone = "not measured there"};
  const PerturbationPoint one[] = {point("first", -0.3, 1), gone};
  const RobustnessIndex index = robustness_index("stack", one);
  EXPECT_EQ(index.band, RobustnessBand::kInvalid);
  EXPECT_EQ(index.reason, "expected two points, found 1 (other: not measured there)");
  const PerturbationPoint two[] = {point("first", -0.3, 1), gone, point("third", -0.3, 3)};
  EXPECT_EQ(robustness_index("stack", two).band, RobustnessBand::kRobust);
}

TEST(Robustness, AClaimThatIsNotShownCannotBeRetained) {
  const PerturbationPoint points[] = {point("first", 0.0005, 1), point("other", -0.3, 3)};
  const RobustnessIndex index = robustness_index("stack", points);
  EXPECT_EQ(index.band, RobustnessBand::kInvalid);
  EXPECT_THAT(index.reason, HasSubstr("shows no difference"));
  PerturbationPoint lost{.name = "first", .lost = "lost 3 of 40 rows of fast"};
  const PerturbationPoint without[] = {lost, point("other", -0.3, 3)};
  EXPECT_THAT(robustness_index("stack", without).reason, HasSubstr("where the claim is made"));
}

// 300 trials of two points and a reference, eight processes each whose log ratios differ by 2 %:
// docs/calibration.md has the figures of 10,000.
TEST(Robustness, TheIntervalCoversAndBandsAreSeldomWrong) {
  int covered = 0;
  int wrong = 0;
  int undecided = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto seed = static_cast<uint64_t>(trial) * 3;
    const PerturbationPoint points[] = {point("first", -0.3, seed, 0.02),
                                        point("same", -0.3, seed + 1, 0.02),
                                        point("other", -0.3 * 0.65, seed + 2, 0.02)};
    const RobustnessIndex index = robustness_index("stack", points);
    covered += index.interval && index.interval->contains(0.65);
    const bool is_decided = index.band != RobustnessBand::kUndecided;
    undecided += !is_decided;
    wrong += is_decided && index.band != RobustnessBand::kSensitive;
  }
  EXPECT_GE(covered, kTrials * 92 / 100);
  EXPECT_LE(wrong, kTrials * 2 / 100);
  EXPECT_LE(undecided, kTrials * 15 / 100);
}

}  // namespace
}  // namespace assay
