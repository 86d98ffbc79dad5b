// The sequence against its definition, and how often it excludes the truth at any of many looks.
#include "stats/sequential/confidence_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "stats/distributions/standard_normal.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

constexpr int kTrials = 2000;
constexpr int kLooks = 200;

// The logarithm of the header's e-value, without the widening.
double log_e(const std::vector<double>& values, double m) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value - m;
    squares += (value - m) * (value - m);
  }
  const double r = 1 + 4 * n;
  const double p = sum * sum / n;
  return -std::log(r) / 2 + n / 2 * std::log(squares / (squares - p + p / r));
}

TEST(ConfidenceSequence, EndsWhereTheEvidenceReachesItsBound) {
  // Neighbours differ, and values lie symmetrically about 1, so that nothing widens it.
  const std::vector<double> values = {1.1, 0.8, 1.3, 0.9, 1.2, 0.7};
  for (const double alpha : {0.05, 0.01}) {
    const auto interval = anytime_interval(values, alpha);
    ASSERT_TRUE(interval);
    EXPECT_NEAR(log_e(values, interval->low), -std::log(alpha), 1e-9);
    EXPECT_NEAR(log_e(values, interval->high), -std::log(alpha), 1e-9);
  }
}

// Squares and cubes of such values leave the range of a double, the interval doesn't.
TEST(ConfidenceSequence, MovesWithTheValuesScale) {
  const std::vector<double> values = {1, 1.1, 0.9, 1.05, 0.95, 2};
  const auto interval = anytime_interval(values, 0.05);
  ASSERT_TRUE(interval);
  for (const int exponent : {-1000, -350, 350, 700, 1020}) {
    std::vector<double> scaled;
    for (const double value : values) scaled.push_back(std::ldexp(value, exponent));
    const auto found = anytime_interval(scaled, 0.05);
    ASSERT_TRUE(found) << exponent;
    EXPECT_EQ(found->low, std::ldexp(interval->low, exponent));
    EXPECT_EQ(found->high, std::ldexp(interval->high, exponent));
  }
  const std::vector<double> wide = {-1.7e308, 1.7e308, -1.7e308, 1.7e308, 1.7e308, 1.7e308};
  EXPECT_FALSE(anytime_interval(wide, 0.05)) << "no double holds its ends";
}

TEST(ConfidenceSequence, AlikeNeighboursWidenIt) {
  const std::vector<double> apart = {1, 2, 1, 2, 1, 2, 1, 2};
  const std::vector<double> alike = {1, 1, 1, 1, 2, 2, 2, 2};
  const auto narrow = anytime_interval(apart, 0.05);
  const auto wide = anytime_interval(alike, 0.05);
  ASSERT_TRUE(narrow && wide);
  // Six of the seven products of neighbours are 0.25 and one is -0.25; the sum of squares is 2. 1 /
  // 8 is for the bias.
  const double c = 5.0 / 8 + 1.0 / 8;
  EXPECT_NEAR((wide->high - wide->low) / (narrow->high - narrow->low), std::sqrt((1 + c) / (1 - c)),
              1e-12);
}

// Hall's term, from its definition; the other end stays where symmetrical values have it.
TEST(ConfidenceSequence, SkewnessMovesTheEndOfTheLongTailOutwards) {
  const std::vector<double> values = {1, 1.1, 0.9, 1.05, 0.95, 2};
  std::vector<double> mirrored;
  double cubes = 0;
  const auto of = *moments(values);
  for (const double value : values) {
    mirrored.push_back(-value);
    cubes += std::pow(value - of.mean, 3);
  }
  const auto interval = anytime_interval(values, 0.05);
  ASSERT_TRUE(interval);
  const double half = of.mean - interval->low;
  const double z = half / std::sqrt(of.variance / 6);
  EXPECT_NEAR(interval->high - of.mean - half, cubes / 6 / of.variance / 36 * (1 + 2 * z * z),
              1e-12);
  EXPECT_GT(interval->high - of.mean, 1.5 * half);
  const auto other = anytime_interval(mirrored, 0.05);
  EXPECT_NEAR(other->low, -interval->high, 1e-12);
  EXPECT_NEAR(other->high, -interval->low, 1e-12);
}

TEST(ConfidenceSequence, ADecisionNeedsASecondLookThatAgrees) {
  const std::vector<double> values = {1.1, 0.8, 1.3, 0.9, 1.2, 0.7, -2};
  const auto before = anytime_interval(std::span(values).first(6), 0.05);
  const auto now = anytime_interval(values, 0.05);
  const auto both = confirmed_interval(values, 0.05);
  ASSERT_TRUE(before && now && both);
  EXPECT_GT(before->low, 0);
  EXPECT_LT(now->low, 0) << "the seventh value takes the sixth look's decision back";
  EXPECT_EQ(both, (Interval{std::min(before->low, now->low), std::max(before->high, now->high)}));

  const int64_t least = least_confirmed_looks(0.05);
  EXPECT_EQ(least, 5);
  EXPECT_FALSE(confirmed_interval(std::span(values).first(least - 1), 0.05));
  EXPECT_TRUE(confirmed_interval(std::span(values).first(least), 0.05));
  EXPECT_FALSE(confirmed_interval({}, 0.05));
}

TEST(ConfidenceSequence, TooFewValuesExcludeNothing) {
  for (const double alpha : {0.05, 0.05 / 6, 1e-6}) {
    const int64_t least = least_looks(alpha);
    std::vector<double> values;
    for (int64_t i = 0; i + 1 < least; ++i) values.push_back(1 + 1e-9 * static_cast<double>(i));
    EXPECT_FALSE(anytime_interval(values, alpha)) << alpha;
    values.push_back(1);
    EXPECT_TRUE(anytime_interval(values, alpha)) << alpha;
  }
  EXPECT_EQ(least_looks(0.05), 4);
  EXPECT_EQ(least_looks(0.05 / 6), 5);
  EXPECT_FALSE(anytime_interval({}, 0.05));
}

TEST(ConfidenceSequence, ConstantValuesLeaveNoDoubt) {
  const auto interval = anytime_interval(std::vector<double>(5, 0.25), 0.05);
  EXPECT_EQ(interval, (Interval{0.25, 0.25}));
}

// ln of the ratio of two arms' mean latencies over a round of six calls.
class Pairs {
 public:
  Pairs(uint64_t seed, uint64_t stream) : random_(seed, stream) {}

  double next(const std::function<double(Random&)>& log_latency, double shared = 0) {
    const auto mean = [&] {
      double sum = 0;
      for (int call = 0; call < 6; ++call) sum += std::exp(shared + log_latency(random_));
      return sum / 6;
    };
    const double one = mean();
    return std::log(one / mean());
  }
  Random& random() { return random_; }

 private:
  Random random_;
};

// The share of trials in which the truth, equal arms, is excluded at any look.
double excluded(uint64_t seed, const std::function<double(Pairs&, int)>& value) {
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Pairs pairs(seed, static_cast<uint64_t>(trial));
    std::vector<double> values;
    bool missed = false;
    for (int look = 0; look < kLooks && !missed; ++look) {
      values.push_back(value(pairs, look));
      const auto interval = anytime_interval(values, 0.05);
      missed = interval && !interval->contains(0);
    }
    wrong += missed ? 1 : 0;
  }
  return static_cast<double>(wrong) / kTrials;
}

double normal(Random& random) {
  return 0.05 * standard_normal(random);
}

TEST(ConfidenceSequence, HoldsTheTruthAtEveryLook) {
  EXPECT_LE(excluded(1, [](Pairs& pairs, int) { return standard_normal(pairs.random()); }), 0.05);
  EXPECT_LE(excluded(2, [](Pairs& pairs, int) { return pairs.next(normal); }), 0.05);
  const auto log_normal = [](Random& random) { return 0.5 * standard_normal(random); };
  EXPECT_LE(excluded(3, [&](Pairs& pairs, int) { return pairs.next(log_normal); }), 0.05);
}

TEST(ConfidenceSequence, HoldsItUnderSpikesAndMoods) {
  const auto spikes = [](Random& random) {
    return normal(random) + (random.uniform() < 0.05 ? std::log(3.0) : 0);
  };
  EXPECT_LE(excluded(4, [&](Pairs& pairs, int) { return pairs.next(spikes); }), 0.05);
  // A tenth of the processes is slow as a whole.
  const auto moods = [](Pairs& pairs, int) {
    const auto mood = [&] { return pairs.random().uniform() < 0.1 ? std::log(1.7) : 0; };
    const double one = mood();
    return pairs.next(normal) + one - mood();
  };
  EXPECT_LE(excluded(5, moods), 0.05);
}

TEST(ConfidenceSequence, WhatTheArmsShareCancels) {
  const auto drifting = [](Pairs& pairs, int look) { return pairs.next(normal, 0.01 * look); };
  EXPECT_LE(excluded(6, drifting), 0.05);
}

// The limit of it, which docs/calibration.md names: rounds that go on from one another.
TEST(ConfidenceSequence, DependentRoundsCostSomeOfIt) {
  double level = 0;
  const auto dependent = [&](Pairs& pairs, int look) {
    const double fresh = standard_normal(pairs.random());
    level = look == 0 ? fresh : 0.3 * level + std::sqrt(1 - 0.3 * 0.3) * fresh;
    return level;
  };
  EXPECT_LE(excluded(7, dependent), 0.10);
}

TEST(ConfidenceSequence, FindsWhatDiffers) {
  // Two standard deviations: at least nine in ten are found by the thirteenth look. (Without the
  // term of skewness, by the twelfth.)
  int found = 0;
  for (uint64_t trial = 0; trial < 500; ++trial) {
    Random random(8, trial);
    std::vector<double> values(13);
    for (double& value : values) value = 2 + standard_normal(random);
    const auto interval = anytime_interval(values, 0.05);
    found += interval && !interval->contains(0) ? 1 : 0;
  }
  EXPECT_GE(found, 450);
}

}  // namespace
}  // namespace assay::stats
