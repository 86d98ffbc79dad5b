// Intervals of effect sizes and the rest that published figures allow.
#include "stats/hypotheses/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/multiple.h"
#include "stats/hypotheses/tests.h"
#include "stats/power/power.h"
#include "stats/samples/ecdf.h"
#include "stats/samples/reference_samples.h"

namespace assay::stats {
namespace {

TEST(CohenD, IntervalHoldsTheNoncentralitiesOfItsTails) {
  const auto interval = cohen_d_interval(0.59, 1620, 1620);
  ASSERT_TRUE(interval);
  const double root = std::sqrt(1620.0 * 1620 / 3240);
  EXPECT_NEAR(*noncentral_t_upper(0.59 * root, 3238, interval->low * root), 0.025, 1e-10);
  EXPECT_NEAR(*noncentral_t_cdf(0.59 * root, 3238, interval->high * root), 0.025, 1e-10);
  const auto mirrored = cohen_d_interval(-0.59, 1620, 1620);
  EXPECT_NEAR(mirrored->low, -interval->high, 1e-9);
}

TEST(CohenD, IntervalExistsForLargeEffectsOfFewValues) {
  for (const double d : {0.0, 3.0, 30.0, 1000.0}) {
    const auto interval = cohen_d_interval(d, 3, 3);
    ASSERT_TRUE(interval) << d;
    EXPECT_LT(interval->low, d + 1e-9);
    EXPECT_GT(interval->high, d - 1e-9);
  }
  EXPECT_FALSE(cohen_d_interval(0.5, 1, 1));
}

TEST(HedgesCorrection, TendsToOneFromBelow) {
  // mpmath, 60 digits: Gamma(m/2) / (sqrt(m/2) Gamma((m-1)/2))
  EXPECT_NEAR(*hedges_correction(200), 0.9962445224791265, 2e-15);
  EXPECT_NEAR(*hedges_correction(400), 0.9981236317149983, 2e-15);
  double last = 0;
  for (double m = 2; m < 1e16; m *= 1.25) {
    const auto j = hedges_correction(m);
    ASSERT_TRUE(j) << m;
    EXPECT_LE(*j, 1) << m;
    EXPECT_GE(*j, last) << m;
    EXPECT_NEAR(1 - *j, 0.75 / m, 0.6 / (m * m) + 2e-16) << m;
    last = *j;
  }
  const auto g = hedges_g({100'000'000'000'000, 1, 1}, {100'000'000'000'000, 0, 1});
  EXPECT_LE(*g, 1);
  EXPECT_GT(*g, 1 - 1e-13);
}

TEST(CohenD, OfLargeVariancesDoesNotOverflow) {
  EXPECT_NEAR(*cohen_d({1000, 3e153, 1e306}, {1000, 1e153, 1e306}), 2, 1e-12);
}

TEST(VarghaDelaney, IntervalIsCutAndAbsentForSeparatedSamples) {
  const std::vector<double> low = {1, 2, 3};
  const std::vector<double> high = {7, 8, 9};
  const auto apart = vargha_delaney(low, high);
  EXPECT_EQ(apart->a, 0);
  EXPECT_FALSE(apart->interval);
  const auto close = vargha_delaney(std::vector<double>{1, 2, 8}, high);
  ASSERT_TRUE(close && close->interval);
  EXPECT_EQ(close->interval->low, 0);
  EXPECT_FALSE(vargha_delaney({}, high));
}

TEST(NormalSuperiority, IsHalfForEqualMeans) {
  EXPECT_DOUBLE_EQ(*normal_superiority({5, 3, 1}, {7, 3, 4}), 0.5);
  EXPECT_NEAR(*normal_superiority({5, 4, 0.5}, {7, 3, 0.5}), normal_cdf(1), 1e-15);
  EXPECT_FALSE(normal_superiority({5, 4, 0}, {7, 3, 0}));
}

TEST(Levene, IsAbsentWhereDeviationsDoNotVary) {
  EXPECT_FALSE(levene(std::vector<std::vector<double>>{{1, 1}, {2, 2}}));
  EXPECT_FALSE(levene(std::vector<std::vector<double>>{{0.1, 0.3}, {0.2, 0.7}}));
  EXPECT_FALSE(levene(std::vector<std::vector<double>>{{1, 2, 4}, {}}));
  EXPECT_TRUE(levene(std::vector<std::vector<double>>{{1, 2, 4}, {1, 5, 7}}));
}

TEST(Power, RepetitionsNeededAreTheFewest) {
  // G*Power and statsmodels: d = 0.5, 80 %, 5 %: 64 a side
  EXPECT_EQ(repetitions_needed(0.5), 64);
  EXPECT_EQ(repetitions_needed(-0.5), 64);
  EXPECT_FALSE(repetitions_needed(0));
}

TEST(Ecdf, StepsThroughTies) {
  const std::vector<double> sample = {1, 2, 2, 5};
  EXPECT_EQ(ecdf(sample, 0.5), 0);
  EXPECT_EQ(ecdf(sample, 2), 0.75);
  EXPECT_EQ(ecdf(sample, 9), 1);
  const auto steps = ecdf_steps(sample);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].value, 2);
  EXPECT_EQ(steps[1].share, 0.75);
  EXPECT_FALSE(ecdf({}, 1));
}

}  // namespace
}  // namespace assay::stats
