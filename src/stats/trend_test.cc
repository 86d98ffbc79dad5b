// Drift along a series against SciPy and a direct count.
#include "stats/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "stats/reference_samples.h"

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

TEST(MannKendall, IsAbsentForConstantsAndFewPoints) {
  EXPECT_FALSE(mann_kendall(std::vector<double>(30, 1.5)));
  EXPECT_FALSE(mann_kendall(std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace assay::stats
