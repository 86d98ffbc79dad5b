// Ranks and effect sizes of values that come in clusters.
#include "stats/estimates/clusters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"
#include "stats/distributions/distributions.h"
#include "stats/distributions/standard_normal.h"
#include "stats/hypotheses/effect.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

struct Sample {
  std::vector<double> values;
  std::vector<size_t> cluster;
  // Handed on as it is. NOLINTNEXTLINE(google-explicit-constructor)
  operator ClusteredSample() const { return {values, cluster}; }
};

// One value a cluster.
Sample one_each(std::vector<double> values) {
  Sample sample{std::move(values), {}};
  sample.cluster.resize(sample.values.size());
  std::iota(sample.cluster.begin(), sample.cluster.end(), size_t{0});
  return sample;
}

// Each value three times, in a cluster.
Sample tripled(const std::vector<double>& values) {
  Sample sample;
  for (size_t i = 0; i < values.size(); ++i) {
    for (int k = 0; k < 3; ++k) {
      sample.values.push_back(values[i]);
      sample.cluster.push_back(i);
    }
  }
  return sample;
}

const std::vector<double> kSlow = {3, 5, 7, 8, 11};
const std::vector<double> kFast = {1, 4, 5, 6, 9};

TEST(RankClusters, OfSingleValuesIsBrunnerAndMunzels) {
  const auto test = rank_clusters(one_each(kSlow), one_each(kFast), false, {}, 0.95);
  const auto plain = vargha_delaney(kSlow, kFast);
  ASSERT_TRUE(test);
  EXPECT_DOUBLE_EQ(test->a, plain->a);
  EXPECT_DOUBLE_EQ(test->u, plain->a * 25);
  ASSERT_TRUE(test->a_interval);
  // Theirs is of A itself: as wide in the middle, on the scale of logits.
  const auto logit = [](double p) { return std::log(p / (1 - p)); };
  const double slope = plain->a * (1 - plain->a);
  const double half = (logit(test->a_interval->high) - logit(test->a_interval->low)) / 2 * slope;
  EXPECT_NEAR(half, plain->a - plain->interval->low, 1e-9);
  EXPECT_LT(test->a_interval->high, 1);
  const auto of_sorted = superiority_interval(kSlow, kFast, {}, 0.95);
  EXPECT_NEAR(test->a_interval->low, of_sorted->low, 1e-12);
  EXPECT_NEAR(test->a_interval->high, of_sorted->high, 1e-12);
}

TEST(RankClusters, CopiesOfOneValueTellNoMoreThanOne) {
  for (const bool paired : {false, true}) {
    const auto once = rank_clusters(one_each(kSlow), one_each(kFast), paired, {}, 0.95);
    const auto thrice = rank_clusters(tripled(kSlow), tripled(kFast), paired, {}, 0.95);
    EXPECT_DOUBLE_EQ(once->a, thrice->a);
    EXPECT_NEAR(*once->p, *thrice->p, 1e-12);
    EXPECT_NEAR(once->a_interval->low, thrice->a_interval->low, 1e-12);
  }
}

TEST(RankClusters, WhatPairsShareCancels) {
  const Sample a = one_each({10.1, 20.2, 30.1, 40.3, 50.2});
  const Sample b = one_each({10, 20, 30, 40, 50});
  EXPECT_LT(*rank_clusters(a, b, true, {}, 0.95)->p, 1e-6);
  EXPECT_GT(*rank_clusters(a, b, false, {}, 0.95)->p, 0.5);
}

TEST(RankClusters, SamplesThatAreApartHaveTheChanceOfTheirClusters) {
  const Sample low = tripled({1, 2, 3, 4, 5});
  const Sample high = tripled({11, 12, 13, 14, 15});
  const auto unpaired = rank_clusters(high, low, false, {}, 0.95);
  EXPECT_EQ(unpaired->a, 1);
  EXPECT_FALSE(unpaired->a_interval);
  EXPECT_TRUE(unpaired->exact);
  EXPECT_NEAR(*unpaired->p, 2.0 / 252, 1e-12);
  EXPECT_NEAR(*rank_clusters(high, low, true, {}, 0.95)->p, 2.0 / 32, 1e-12);
  EXPECT_FALSE(rank_clusters({high.values, std::vector<size_t>(15, 0)}, low, false, {}, 0.95)->p);
  EXPECT_FALSE(rank_clusters(Sample{}, low, false, {}, 0.95));
}

TEST(TotalVariance, IsThatOfCallsHoweverManyAClusterHas) {
  const auto single = total_variance(one_each(kSlow), one_each(kFast));
  EXPECT_NEAR(single->variance, total_variance(*moments(kSlow), *moments(kFast))->variance, 1e-12);
  EXPECT_EQ(single->df, 8);
  const auto copies = total_variance(tripled(kSlow), tripled(kFast));
  EXPECT_NEAR(copies->variance, single->variance, 1e-12);
  EXPECT_NEAR(copies->df, 8, 1e-9) << "not the 28 of 30 rows";
  EXPECT_FALSE(total_variance(tripled({1}), tripled({2})));
}

TEST(Standardized, OfSingleValuesIsCohensAndHedges) {
  const Moments a = *moments(kSlow);
  const Moments b = *moments(kFast);
  const auto error = welch_standard_error(a, b);
  const auto effect = standardized(a.mean - b.mean, *total_variance(a, b), error, 0.95);
  EXPECT_NEAR(effect.d, *cohen_d(a, b), 1e-12);
  EXPECT_NEAR(*effect.g, *hedges_g(a, b), 1e-12);
  ASSERT_TRUE(effect.d_interval);
  // Near that of the noncentral t, which assumes normal samples of one variance.
  const auto noncentral = cohen_d_interval(effect.d, 5, 5);
  EXPECT_NEAR(effect.d_interval->low, noncentral->low, 0.3);
  EXPECT_NEAR(effect.d_interval->high, noncentral->high, 0.3);
  EXPECT_FALSE(standardized(1, {1, 8}, std::nullopt, 0.95).d_interval);
}

// Five clusters of six values, of which four fifths of the variance lie between clusters.
Sample drawn_clusters(Random& random, double mean) {
  Sample sample;
  for (size_t cluster = 0; cluster < 5; ++cluster) {
    const double level = mean + std::sqrt(0.8) * standard_normal(random);
    for (int i = 0; i < 6; ++i) {
      sample.values.push_back(level + std::sqrt(0.2) * standard_normal(random));
      sample.cluster.push_back(cluster);
    }
  }
  return sample;
}

TEST(Clusters, IntervalsCoverWhatIsTrueOfSingleValues) {
  constexpr int kTrials = 2000;
  for (const double d : {0.0, 1.0, 2.0}) {
    const double superiority = normal_cdf(d / std::sqrt(2.0));
    int of_d = 0;
    int of_a = 0;
    int without = 0;  // no value of one sample lay among the other's
    Random random(31);
    for (int trial = 0; trial < kTrials; ++trial) {
      const Sample a = drawn_clusters(random, d);
      const Sample b = drawn_clusters(random, 0);
      // Where all clusters have one size, the means' error is that of the clusters' means.
      const auto means = [](const Sample& sample) {
        std::vector<double> each;
        for (size_t i = 0; i < 30; i += 6)
          each.push_back(*mean(std::span(sample.values).subspan(i, 6)));
        return *moments(each);
      };
      const auto error = welch_standard_error(means(a), means(b));
      const double difference = *mean(a.values) - *mean(b.values);
      of_d += standardized(difference, *total_variance(a, b), error, 0.95).d_interval->contains(d);
      const auto rank = rank_clusters(a, b, false, {}, 0.95);
      without += !rank->a_interval;
      of_a += rank->a_interval && rank->a_interval->contains(superiority);
    }
    RecordProperty(fmt::format("d_{}", d), of_d);
    RecordProperty(fmt::format("a_{}", d), of_a);
    RecordProperty(fmt::format("without_{}", d), without);
    EXPECT_GE(of_d, kTrials * 0.93) << d;
    // Near 1, five clusters of which few overlap leave the error of A unsure.
    EXPECT_GE(of_a, (kTrials - without) * (d < 2 ? 0.93 : 0.9)) << d;
  }
}

}  // namespace
}  // namespace assay::stats
