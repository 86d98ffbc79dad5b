// The interval of a ratio of quantiles covers the truth about as often as it says.
#include "stats/estimates/quantile_ratio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "stats/distributions/standard_normal.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// Exponential: its median is ln 2 times the mean.
std::vector<double> exponential(Random& random, size_t n, double mean) {
  std::vector<double> sample(n);
  for (double& x : sample) x = -mean * std::log(1 - random.uniform());
  return sorted(sample);
}

TEST(QuantileRatio, OfMediansCoversTheTruth) {
  const BootstrapOptions options{.resamples = 500};
  int covered = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    Random random(trial, 7);
    const auto slow = exponential(random, 60, 3);
    const auto fast = exponential(random, 60, 2);
    const auto ratio = quantile_ratio(slow, fast, 0.5, options, trial);
    ASSERT_TRUE(ratio);
    EXPECT_DOUBLE_EQ(ratio->ratio, *median(slow) / *median(fast));
    covered += ratio->interval.contains(1.5);
  }
  EXPECT_GE(covered, 368);  // 92 % of 400; nominal 95 %
  EXPECT_LE(covered, 396);
}

TEST(QuantileRatio, OfATailIsThatOfTheTail) {
  std::vector<double> calm(200, 1.0);
  std::vector<double> spiky(200, 1.0);
  for (size_t i = 150; i < 200; ++i) spiky[i] = 50;
  const BootstrapOptions options{.resamples = 500};
  const auto tail = quantile_ratio(spiky, calm, 0.95, options, 1);
  ASSERT_TRUE(tail);
  EXPECT_DOUBLE_EQ(tail->ratio, 50);
  EXPECT_GT(tail->interval.low, 10);
  EXPECT_DOUBLE_EQ(quantile_ratio(spiky, calm, 0.5, options, 1)->ratio, 1);
}

TEST(QuantileRatio, IsAbsentWhereItMeansNothing) {
  const BootstrapOptions options;
  const std::vector<double> one = {1};
  const std::vector<double> some = {1, 2, 3};
  const std::vector<double> zero = {0, 1, 2};
  EXPECT_FALSE(quantile_ratio(one, some, 0.5, options, 1));
  EXPECT_FALSE(quantile_ratio(some, zero, 0.5, options, 1));
}

TEST(QuantileRatio, DependsOnSeedAndStreamAlone) {
  Random random(3, 3);
  const auto a = exponential(random, 30, 1);
  const auto b = exponential(random, 40, 1);
  const BootstrapOptions options{.resamples = 200};
  EXPECT_EQ(quantile_ratio(a, b, 0.5, options, 5)->interval,
            quantile_ratio(a, b, 0.5, options, 5)->interval);
  EXPECT_NE(quantile_ratio(a, b, 0.5, options, 5)->interval,
            quantile_ratio(a, b, 0.5, options, 6)->interval);
}

std::vector<double> first_numbers(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) values.push_back(i);
  return values;
}

// Tables of order statistics (Conover 1999, A3): the median of 20 from the 6th to the 15th.
TEST(QuantileInterval, GoesFromOneOrderStatisticToAnother) {
  const auto twenty = first_numbers(20);
  EXPECT_EQ(quantile_interval(twenty, 0.5, 0.95), (Interval{6, 15}));
  EXPECT_EQ(quantile_interval(first_numbers(6), 0.5, 0.95), (Interval{1, 6}));
}

TEST(QuantileInterval, IsAbsentWhereTheValuesAreTooFew) {
  EXPECT_FALSE(quantile_interval(first_numbers(5), 0.5, 0.95));
  EXPECT_FALSE(quantile_interval(first_numbers(71), 0.95, 0.95));
  EXPECT_TRUE(quantile_interval(first_numbers(72), 0.95, 0.95));
  EXPECT_FALSE(quantile_interval({}, 0.5, 0.95));
  EXPECT_FALSE(quantile_interval(first_numbers(100), 1, 0.95));
}

TEST(QuantileInterval, CoversATailOfSkewedValues) {
  Random random(1);
  int64_t covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(std::exp(standard_normal(random)));
    std::ranges::sort(values);
    covered += quantile_interval(values, 0.95, 0.95)->contains(std::exp(1.6448536269514722));
  }
  EXPECT_GE(covered, 1900 - 30);
}

}  // namespace
}  // namespace assay::stats
