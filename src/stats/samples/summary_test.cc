// Description of a sample against NumPy and SciPy, and the figures that small samples leave absent.
#include "stats/samples/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "stats/samples/reference_samples.h"

namespace assay::stats {
namespace {

TEST(Summary, AgreesWithNumPyAndSciPy) {
  const auto order = sorted(kSampleA);
  EXPECT_DOUBLE_EQ(*mean(kSampleA), 12.658333333333333);                // A.mean()
  EXPECT_NEAR(*variance(kSampleA), 36.32992424242425, 1e-12);           // A.var(ddof=1)
  EXPECT_NEAR(*standard_deviation(kSampleA), 6.02743098197102, 1e-13);  // A.std(ddof=1)
  EXPECT_DOUBLE_EQ(*median(order), 10.75);                              // np.median(A)
  EXPECT_NEAR(*quantile(order, 0.25), 10.175, 1e-12);                   // np.quantile(A, .25)
  EXPECT_NEAR(*quantile(order, 0.90), 13.21, 1e-12);                    // np.quantile(A, .9)
  EXPECT_NEAR(*quantile(order, 0.37), 10.414, 1e-12);                   // np.quantile(A, .37)
  EXPECT_NEAR(*trimmed_mean(order, 0.1), 11.06, 1e-12);                 // st.trim_mean(A, .1)
  EXPECT_NEAR(*median_absolute_deviation(order), 0.75, 1e-12);  // st.median_abs_deviation(A)
  const auto fences = tukey_fences(order);  // q1 - 1.5 (q3 - q1), q3 + 1.5 (q3 - q1)
  EXPECT_NEAR(fences->low, 7.625, 1e-12);
  EXPECT_NEAR(fences->high, 14.425, 1e-12);
}

// scipy.stats.ttest_ind(A, B, equal_var=False, trim=0.2): Yuen's test.
TEST(Summary, TrimmedSeriesHasTheMeanAndTheErrorOfYuensTest) {
  std::vector<Moments> sides;
  std::vector<double> freedom;
  for (const std::span<const double> sample :
       {std::span<const double>(kSampleA), std::span<const double>(kSampleB)}) {
    const TrimmedSeries series = trimmed_series(sample, 0.2);
    sides.push_back(*moments(series.values));
    freedom.push_back(series.freedom * static_cast<double>(sample.size() - 1));
  }
  EXPECT_NEAR(sides[0].mean, 10.925, 1e-12);
  EXPECT_NEAR(sides[1].mean, 9.444444444444445, 1e-12);
  const double squares[] = {sides[0].variance / 12, sides[1].variance / 15};
  const double square = squares[0] + squares[1];
  EXPECT_NEAR((sides[0].mean - sides[1].mean) / std::sqrt(square), 3.321293628812436, 1e-12);
  EXPECT_NEAR(square * square /
                  (squares[0] * squares[0] / freedom[0] + squares[1] * squares[1] / freedom[1]),
              8.624096199888204, 1e-12);
  const std::vector<double> few = {3, 1, 2};
  EXPECT_EQ(trimmed_series(few, 0.2).values, few);
  EXPECT_EQ(trimmed_series(few, 0.2).freedom, 1);
  EXPECT_EQ(trimmed_series(few, 0.4).values, few);
}

TEST(Summary, QuantileInPlaceEqualsQuantileOfTheSortedSample) {
  const auto order = sorted(kSampleB);
  for (const double p : {0.0, 0.025, 0.1, 0.37, 0.5, 0.9, 0.975, 1.0}) {
    std::vector<double> copy(kSampleB.begin(), kSampleB.end());
    EXPECT_DOUBLE_EQ(*quantile_in_place(copy, p), *quantile(order, p)) << p;
  }
}

TEST(Summary, QuantileUnsortedEqualsQuantileOfTheSortedSample) {
  Random random(3);
  for (const size_t n : {1, 50, 1024, 10000}) {
    for (const bool ordered :
         {false, true}) {  // an order that misleads a guide of every k-th value
      std::vector<double> sample(n);
      for (size_t i = 0; i < n; ++i) {
        sample[i] = ordered && i % (n / 128 + 1) == 0 ? 100 : std::floor(random.uniform() * 5000);
      }
      const auto order = sorted(sample);
      for (const double p : {0.0, 1e-4, 0.025, 0.1, 0.37, 0.5, 0.9, 0.975, 1.0}) {
        EXPECT_EQ(*quantile_unsorted(sample, p), *quantile(order, p)) << n << " " << p;
      }
    }
  }
  EXPECT_FALSE(quantile_unsorted({}, 0.5));
}

TEST(Summary, LeavesOutWhatASampleCannotGive) {
  EXPECT_FALSE(mean({}));
  EXPECT_FALSE(median({}));
  EXPECT_FALSE(median_absolute_deviation({}));
  const std::vector<double> one = {3};
  EXPECT_EQ(mean(one), 3.0);
  EXPECT_EQ(median(one), 3.0);
  EXPECT_FALSE(standard_deviation(one));
  EXPECT_FALSE(moments(one));
  const std::vector<double> three = {1, 2, 3};
  EXPECT_FALSE(tukey_fences(three));
  const std::vector<double> huge = {1.7e308, 1.7e308};
  EXPECT_FALSE(mean(huge)) << "a sum that overflows";
}

TEST(Summary, PercentileNeedsAnObservationBeyondIt) {
  for (const auto& [p, needed] : {std::pair{0.9, 10}, {0.95, 20}, {0.99, 100}, {0.01, 100}}) {
    EXPECT_FALSE(percentile(std::vector<double>(static_cast<size_t>(needed - 1), 1.0), p)) << p;
    EXPECT_TRUE(percentile(std::vector<double>(static_cast<size_t>(needed), 1.0), p)) << p;
  }
}

TEST(Summary, ARepeatedValueHasNoVariance) {
  EXPECT_EQ(variance(std::vector<double>(3, 0.1)), 0.0);  // (0.1 + 0.1 + 0.1) / 3 != 0.1
}

TEST(Summary, VarianceKeepsItsDigitsFarFromZero) {
  EXPECT_NEAR(*variance(std::vector<double>{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}), 30, 1e-9);
}

}  // namespace
}  // namespace assay::stats
