// Bootstrap intervals: against SciPy's within simulation error, reproducible, and of the promised
// coverage.
#include "stats/resamples/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "stats/samples/reference_samples.h"

namespace assay::stats {
namespace {

BootstrapOptions options_of(BootstrapMethod method, int64_t resamples = 40000) {
  return {.resamples = resamples, .seed = 11, .confidence = 0.95, .method = method};
}

std::optional<ResampledMean> resample_mean(std::span<const double> sample,
                                           const BootstrapOptions& options, uint64_t stream,
                                           ThreadPool* pool = nullptr) {
  const BootstrapSample one[] = {{sample, stream}};
  return resample_means(one, options, pool)[0];
}

TEST(Bootstrap, OfTheMeanAgreesWithSciPy) {
  // st.bootstrap((A,), np.mean, n_resamples=400000, method="BCa" | "percentile", rng=1). The bounds
  // lie where the replicates are sparse (one value of 31.5): simulation error is about 0.05.
  const auto bca = options_of(BootstrapMethod::kBca);
  const auto percentile = options_of(BootstrapMethod::kPercentile);
  const auto a = *resample_mean(kSampleA, bca, 1);
  const auto b = *resample_mean(kSampleB, bca, 2);
  EXPECT_NEAR(mean_interval(a, bca)->low, 10.7333, 0.03);
  EXPECT_NEAR(mean_interval(a, bca)->high, 19.5, 0.15);
  EXPECT_NEAR(mean_interval(a, percentile)->low, 10.5083, 0.03);
  EXPECT_NEAR(mean_interval(a, percentile)->high, 16.3167, 0.1);
  EXPECT_NEAR(mean_interval(b, bca)->low, 9.3533, 0.02);
  EXPECT_NEAR(mean_interval(b, bca)->high, 10.98, 0.06);
}

TEST(Bootstrap, OfARatioAgreesWithSciPy) {
  // st.bootstrap((A, B), lambda x, y: np.log(np.mean(x) / np.mean(y)), method=...), exponentiated
  const auto bca = options_of(BootstrapMethod::kBca);
  const auto percentile = options_of(BootstrapMethod::kPercentile);
  const auto a = *resample_mean(kSampleA, bca, 1);
  const auto b = *resample_mean(kSampleB, bca, 2);
  const RatioPair pair[] = {{&a, &b}};
  EXPECT_NEAR(ratio_interval(pair, bca)->low, 1.0862, 0.01);
  EXPECT_NEAR(ratio_interval(pair, bca)->high, 1.9262, 0.02);
  EXPECT_NEAR(ratio_interval(pair, percentile)->low, 1.0515, 0.01);
  EXPECT_NEAR(ratio_interval(pair, percentile)->high, 1.7039, 0.015);
}

TEST(Bootstrap, OfTheGeometricMeanResamplesWithinStrata) {
  // NumPy: exp(.5 * (log(rm(A)/rm(B)) + log(rm(C)/rm(D)))), rm: 400000 resampled means, C = A/2,
  // D = 0.55 B; np.quantile(..., [.025, .975])
  const auto percentile = options_of(BootstrapMethod::kPercentile);
  std::vector<double> c;
  std::vector<double> d;
  for (const double x : kSampleA) c.push_back(x * 0.5);
  for (const double x : kSampleB) d.push_back(x * 0.55);
  const auto a = *resample_mean(kSampleA, percentile, 1);
  const auto b = *resample_mean(kSampleB, percentile, 2);
  const auto half_a = *resample_mean(c, percentile, 3);
  const auto half_b = *resample_mean(d, percentile, 4);
  const RatioPair pairs[] = {{&a, &b}, {&half_a, &half_b}};
  EXPECT_NEAR(ratio_interval(pairs, percentile)->low, 1.0438, 0.01);
  EXPECT_NEAR(ratio_interval(pairs, percentile)->high, 1.4938, 0.012);
}

TEST(Bootstrap, DoesNotDependOnTheNumberOfThreads) {
  const auto options = options_of(BootstrapMethod::kBca, 4321);
  ThreadPool pool(3);
  const auto alone = resample_mean(kSampleA, options, 5);
  const auto together = resample_mean(kSampleA, options, 5, &pool);
  EXPECT_EQ(alone->replicates, together->replicates);
  EXPECT_NE(alone->replicates, resample_mean(kSampleA, options, 6)->replicates);
}

TEST(Bootstrap, DrawsTheSameResamplesOnEveryMachine) {
  // Written down from the first build: a change of generator or summation order shows here.
  const auto sample = resample_mean(kSampleB, options_of(BootstrapMethod::kBca, 3), 9);
  EXPECT_DOUBLE_EQ(sample->replicates[0], 9.6199999999999992);
  EXPECT_DOUBLE_EQ(sample->replicates[1], 9.9000000000000004);
}

// Sizes that share draws and sizes that don't, tiles that are full and not.
std::vector<std::vector<double>> samples_of_several_sizes() {
  Random random(5);
  std::vector<std::vector<double>> samples;
  for (size_t i = 0; i < 21; ++i) {
    samples.emplace_back(i % 3 == 0 ? 40 : 7 + i);
    for (double& x : samples.back()) x = 10 + random.uniform();
  }
  samples.push_back({1});
  samples.push_back({2, 2, 2});
  return samples;
}

TEST(Bootstrap, OfManySamplesIsThatOfEachAlone) {
  const auto options = options_of(BootstrapMethod::kBca, 1000);
  const auto samples = samples_of_several_sizes();
  std::vector<BootstrapSample> together;
  for (size_t i = 0; i < samples.size(); ++i) together.push_back({samples[i], i * 77});
  ThreadPool pool(3);
  const auto all = resample_means(together, options, &pool);
  ASSERT_EQ(all.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto alone = resample_mean(samples[i], options, i * 77);
    ASSERT_EQ(all[i].has_value(), alone.has_value()) << i;
    if (!alone) continue;
    EXPECT_EQ(all[i]->replicates, alone->replicates) << i;
  }
}

TEST(Bootstrap, ReplicatesOfTwoSamplesThatShareDrawsAreIndependent) {
  // The same values in two streams: had they the same order, they would correlate fully.
  const auto options = options_of(BootstrapMethod::kBca, 10000);
  for (uint64_t stream = 1; stream < 40; ++stream) {
    const auto a = resample_mean(kSampleA, options, 0);
    const auto b = resample_mean(kSampleA, options, stream);
    double product = 0;
    double square = 0;
    for (size_t i = 0; i < a->replicates.size(); ++i) {
      product += (a->replicates[i] - a->mean) * (b->replicates[i] - b->mean);
      square += (a->replicates[i] - a->mean) * (a->replicates[i] - a->mean);
    }
    EXPECT_LT(std::abs(product / square), 0.045) << stream;  // 4.5 standard errors
    EXPECT_EQ(mean_interval(*a, options), mean_interval(*b, options));
  }
}

TEST(Bootstrap, KeepsTheDigitsOfTinyAndHugeValues) {
  const auto options = options_of(BootstrapMethod::kBca, 2000);
  const auto plain = *mean_interval(*resample_mean(kSampleA, options, 1), options);
  for (const double scale : {0x1p-900, 0x1p900}) {
    std::vector<double> sample;
    for (const double x : kSampleA) sample.push_back(x * scale);
    const auto scaled = mean_interval(*resample_mean(sample, options, 1), options);
    ASSERT_TRUE(scaled);
    EXPECT_NEAR(scaled->low / scale, plain.low, 1e-12);
    EXPECT_NEAR(scaled->high / scale, plain.high, 1e-12);
  }
}

TEST(Bootstrap, TheIntervalOfAnInverseRatioIsTheInverse) {
  const auto options = options_of(BootstrapMethod::kBca, 9999);
  const auto a = *resample_mean(kSampleA, options, 1);
  const auto b = *resample_mean(kSampleB, options, 2);
  const RatioPair there[] = {{&a, &b}};
  const RatioPair back[] = {{&b, &a}};
  EXPECT_NEAR(ratio_interval(there, options)->low, 1 / ratio_interval(back, options)->high, 1e-3);
}

TEST(Bootstrap, IsAbsentForConstantsAndSingleValues) {
  const BootstrapOptions options;
  EXPECT_FALSE(resample_mean({}, options, 0));
  EXPECT_FALSE(resample_mean(std::vector{1.0}, options, 0));
  EXPECT_FALSE(resample_mean(std::vector<double>(10, 0.1), options, 0));
  EXPECT_FALSE(ratio_interval({}, options));
}

// Mildly skewed lognormal samples of 30 (sd about 10 %): the true mean is exp(s^2 / 2).
TEST(Bootstrap, CoversTheTrueMeanAtItsNominalRate) {
  constexpr int kTrials = 1000;
  Random random(2026);
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> sample(30);
    for (double& x : sample) {
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      x = std::exp(0.1 * radius * std::cos(2 * std::numbers::pi * random.uniform()));
    }
    auto options = options_of(BootstrapMethod::kBca, 1000);
    options.seed = static_cast<uint64_t>(trial);  // of one seed, all trials would share their draws
    const auto resampled = resample_mean(sample, options, 0);
    covered += mean_interval(*resampled, options)->contains(std::exp(0.005));
  }
  EXPECT_GE(covered, 920);
  EXPECT_LE(covered, 970);
}

}  // namespace
}  // namespace assay::stats
