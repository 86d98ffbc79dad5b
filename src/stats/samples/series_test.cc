// Dependence and change points: what a made series holds is found, and white noise is left alone.
#include "stats/samples/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/random.h"

namespace assay::stats {
namespace {

double normal_value(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// x_t = r x_(t-1) + noise: the effective size is n (1 - r) / (1 + r).
std::vector<double> autoregressive(uint64_t seed, size_t n, double r) {
  Random random(seed);
  std::vector<double> x(n);
  double last = normal_value(random) / std::sqrt(1 - r * r);
  for (double& value : x) value = last = r * last + normal_value(random);
  return x;
}

TEST(EffectiveSize, IsThatOfAnAutoregressiveSeries) {
  for (const double r : {0.0, 0.5, 0.8}) {
    const auto size = effective_sample_size(autoregressive(3, 20000, r));
    ASSERT_TRUE(size);
    const double expected = 20000 * (1 - r) / (1 + r);
    EXPECT_NEAR(size->size, expected, expected * 0.12) << r;
  }
}

TEST(EffectiveSize, IsNeverMoreThanTheSeries) {
  const std::vector<double> alternating = {1, 2, 1, 2, 1, 2, 1, 2};
  EXPECT_EQ(effective_sample_size(alternating)->size, 8);
  EXPECT_FALSE(effective_sample_size(std::vector<double>(30, 2.5)));
  EXPECT_FALSE(effective_sample_size(std::vector<double>{1, 2, 3}));
}

TEST(Lag1, IsUnbiasedAndKnowsItsErrorOnWhiteNoise) {
  double sum = 0;
  double squares = 0;
  constexpr int kTrials = 4000;
  double error = 0;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto lag = lag1_autocorrelation(autoregressive(seed, 30, 0));
    sum += lag->r / kTrials;
    squares += lag->r * lag->r / kTrials;
    error = lag->error;
  }
  EXPECT_NEAR(sum, 0, 0.012);  // four standard errors
  EXPECT_NEAR(std::sqrt(squares), error, 0.01);
  EXPECT_NEAR(lag1_autocorrelation(autoregressive(1, 5000, 0.5))->r, 0.5, 0.04);
  EXPECT_FALSE(lag1_autocorrelation(std::vector<double>{1, 2, 1, 2, 1}));
}

TEST(LjungBox, RejectsDependenceAndSeldomWhiteNoise) {
  int rejected = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    rejected += ljung_box(autoregressive(seed, 60, 0), 5)->p < 0.05;
  }
  EXPECT_LE(rejected, 30);  // 5 % of 300 and four standard errors
  EXPECT_GE(rejected, 3);
  EXPECT_LT(ljung_box(autoregressive(1, 200, 0.6), 5)->p, 1e-6);
}

TEST(ChangePoints, AreFoundWhereTheLevelMoves) {
  Random random(7);
  std::vector<double> x;
  for (int i = 0; i < 90; ++i) x.push_back((i < 30 ? 10 : i < 60 ? 13 : 10) + normal_value(random));
  x[12] = 400;  // one slow sample moves nothing
  const auto found = change_points(x);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(static_cast<double>(found[0].index), 30, 2);
  EXPECT_NEAR(static_cast<double>(found[1].index), 60, 2);
  EXPECT_LT(found[0].log_p, std::log(0.01));
}

TEST(ChangePoints, AreSeldomFoundInNoise) {
  int found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    found += !change_points(autoregressive(seed, 60, 0), 0.05).empty();
  }
  EXPECT_LE(found, 30);
  EXPECT_TRUE(change_points(std::vector<double>(20, 1.0)).empty());
  EXPECT_TRUE(change_points({}).empty());
}

}  // namespace
}  // namespace assay::stats
