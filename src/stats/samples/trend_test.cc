// Drift along a series against SciPy and a direct count.
#include "stats/samples/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "stats/samples/reference_samples.h"

namespace assay::stats {
namespace {

TEST(TheilSen, AgreesWithSciPy) {
  std::vector<double> x;
  for (int i = 0; i < 12; ++i) x.push_back(2 * i + 1);
  EXPECT_NEAR(*theil_sen_slope(x, kSampleA), 0.03375, 1e-12);  // st.theilslopes(A, arange(12)*2+1)
}

TEST(TheilSen, FindsTheSlopeOfLongSeriesFromFewerPairs) {
  std::vector<double> x;
  std::vector<double> y;
  Random random(7);
  for (int i = 0; i < 5000; ++i) {
    x.push_back(i);
    y.push_back(10 + 0.002 * i + random.uniform());
  }
  EXPECT_NEAR(*theil_sen_slope(x, y), 0.002, 0.0001);
}

TEST(TheilSen, IsAbsentWithoutTwoPositions) {
  EXPECT_FALSE(theil_sen_slope({}, {}));
  EXPECT_FALSE(theil_sen_slope(std::vector{1.0, 1.0}, std::vector{2.0, 3.0}));
}

TEST(MannKendall, AgreesWithADirectCountInNumPy) {
  // s = sum(sign(x[j] - x[i])), z = (s - sign(s)) / sqrt(v), 2 * st.norm.sf(abs(z))
  const auto a = mann_kendall(kSampleA);
  EXPECT_EQ(a->s, 10);
  EXPECT_NEAR(a->z, 0.6171529331913674, 1e-12);
  EXPECT_NEAR(a->p, 0.5371338571769023, 1e-12);
  const auto b = mann_kendall(kSampleB);  // with a tie
  EXPECT_EQ(b->s, 6);
  EXPECT_NEAR(b->p, 0.8043360683870272, 1e-12);
  const auto rising = mann_kendall(std::vector<double>{1, 2, 3, 4, 4.5, 4.4, 6, 7, 8, 8});
  EXPECT_EQ(rising->s, 42);
  EXPECT_NEAR(rising->p, 0.00023149432556019784, 1e-15);
}

// A level of its own in each series is no trend, and the same way in each of them is one.
TEST(MannKendall, OfSeveralSeriesSumsWhatEachShows) {
  const std::vector<std::vector<double>> levels = {
      {5, 7, 4, 6}, {15, 17, 14, 16}, {25, 27, 24, 26}};
  const auto apart = mann_kendall(levels);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->s, 0);
  EXPECT_EQ(apart->p, 1);
  const std::vector<std::vector<double>> rising = {{9, 10, 11, 12}, {5, 6, 7, 8}, {1, 2, 3, 4}};
  const auto each = mann_kendall(rising);
  ASSERT_TRUE(each);
  EXPECT_EQ(each->s, 18) << "6 pairs in each of three";
  EXPECT_NEAR(each->z, 17 / std::sqrt(3 * 4 * 3 * 13 / 18.0), 1e-12);
  const std::vector<double> alone = {1, 2, 4, 3, 5};
  const std::vector<std::vector<double>> short_ones = {{1, 2, 3}, alone, {7, 7, 7, 7}};
  EXPECT_EQ(mann_kendall(short_ones)->p, mann_kendall(alone)->p);
  EXPECT_FALSE(mann_kendall(std::vector<std::vector<double>>{{1, 2, 3}, {2, 2, 2, 2}}));
}

TEST(MannKendall, IsAbsentForWhatIsNoNumber) {
  for (const double x :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(mann_kendall(std::vector{1.0, 2.0, x, x, 3.0, 4.0}));
  }
}

TEST(MannKendall, IsAbsentForConstantsAndFewPoints) {
  EXPECT_FALSE(mann_kendall(std::vector<double>(30, 1.5)));
  EXPECT_FALSE(mann_kendall(std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace assay::stats
