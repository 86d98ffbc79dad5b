// Simulates, with fixed seeds, the coverage of the calibrated intervals and measures their cost.
#include "stats/estimates/few_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "stats/distributions/standard_normal.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

std::optional<ResampledMean> resample_one(std::span<const double> sample,
                                          const BootstrapOptions& options, uint64_t stream) {
  const BootstrapSample one[] = {{sample, stream}};
  return resample_means(one, options)[0];
}

// Latencies with a mean of 1.
struct Kind {
  std::string name;
  std::function<double(Random&)> draw;
};

Kind steady() {
  return {"1 % noise", [](Random& random) { return 1 + 0.01 * standard_normal(random); }};
}
Kind noisy() {
  return {"normal, 5 %", [](Random& random) { return 1 + 0.05 * standard_normal(random); }};
}
Kind log_normal(double sigma) {
  return {"log-normal, " + std::to_string(static_cast<int>(sigma * 100)) + " %",
          [=](Random& random) {
            return std::exp(sigma * standard_normal(random) - sigma * sigma / 2);
          }};
}
// A fixed time and a wait whose length has no memory.
Kind skewed() {
  return {"skewed", [](Random& random) { return 0.8 - 0.2 * std::log(1 - random.uniform()); }};
}
Kind slow_calls() {
  return {"5 % of calls 3 times as slow", [](Random& random) {
            return (1 + 0.05 * standard_normal(random)) * (random.uniform() < 0.05 ? 3 : 1) / 1.1;
          }};
}

struct Covered {
  double share = 0;   // of trials
  double before = 0;  // of trials, by the percentile interval alone
  double width = 0;   // median over that of Welch's t interval of the logarithms
};

constexpr int kFewTrials = 1500;

Covered cover(const Kind& a, const Kind& b, size_t n) {
  Random random(n, a.name.size() * 100 + b.name.size());
  std::vector<std::vector<double>> values(2 * kFewTrials, std::vector<double>(n));
  std::vector<BootstrapSample> samples;
  for (size_t i = 0; i < values.size(); ++i) {
    for (double& x : values[i]) x = (i % 2 == 0 ? a : b).draw(random);
    samples.push_back({values[i], i});
  }
  const BootstrapOptions options{.resamples = 1000};
  BootstrapOptions percentile = options;
  percentile.method = BootstrapMethod::kPercentile;
  const auto resampled = resample_means(samples, options);
  Covered covered;
  std::vector<double> widths;
  for (size_t i = 0; i < values.size(); i += 2) {
    const RatioPair pair[] = {{&*resampled[i], &*resampled[i + 1]}};
    const auto interval = calibrated_ratio_interval(pair, options);
    covered.share += interval->contains(1) / static_cast<double>(kFewTrials);
    covered.before +=
        ratio_interval(pair, percentile)->contains(1) / static_cast<double>(kFewTrials);
    const auto relative = [&](size_t of) {
      Moments x = *moments(values[of]);
      x.variance /= x.mean * x.mean;
      return x;
    };
    const auto welch =
        t_interval(0, *welch_standard_error(relative(i), relative(i + 1)), options.confidence);
    widths.push_back(std::log(interval->high / interval->low) / (welch->high - welch->low));
  }
  std::ranges::nth_element(widths, widths.begin() + kFewTrials / 2);
  covered.width = widths[kFewTrials / 2];
  return covered;
}

// The figures of docs/calibration.md, "Few values".
void show(const Kind& a, const Kind& b, const Covered& covered) {
  fmt::print("{} beside {}: {:.1f} % (percentile alone {:.1f} %), width {:.2f}\n", a.name, b.name,
             covered.share * 100, covered.before * 100, covered.width);
}

class Coverage : public testing::TestWithParam<size_t> {};

constexpr double kError = 0.0056;  // of a share of 95 % in 1,500 trials

TEST_P(Coverage, OfArmsOfOneKindIsWhatTheIntervalSays) {
  for (const Kind& kind : {noisy(), log_normal(0.05), log_normal(0.3), skewed()}) {
    const Covered covered = cover(kind, kind, GetParam());
    show(kind, kind, covered);
    EXPECT_GE(covered.share, 0.95 - 2 * kError) << kind.name;
    EXPECT_LE(covered.share, 0.98) << kind.name;
    EXPECT_LE(covered.width, 1.15) << kind.name;
  }
}

TEST_P(Coverage, OfArmsWithSlowCallsIsNearlyThat) {
  const Covered covered = cover(slow_calls(), slow_calls(), GetParam());
  show(slow_calls(), slow_calls(), covered);
  EXPECT_GE(covered.share, 0.93);
  EXPECT_LE(covered.share, 0.99);
  EXPECT_LE(covered.width, 1.25);
}

// No interval of five values can know how far the times of a skewed arm reach.
TEST_P(Coverage, OfASkewedArmBesideASteadyOneFallsShortByLittle) {
  for (const auto& [a, b] : {std::pair(skewed(), steady()), std::pair(steady(), skewed())}) {
    const Covered covered = cover(a, b, GetParam());
    show(a, b, covered);
    EXPECT_GE(covered.share, GetParam() < 10 ? 0.92 : 0.935) << a.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Values, Coverage, testing::Values(5, 7, 10, 20, 30));

TEST(CalibratedInterval, OfOneMeanCoversIt) {
  for (const size_t n : {5u, 7u, 10u, 30u}) {
    for (const Kind& kind : {noisy(), log_normal(0.05)}) {
      Random random(n, 3);
      std::vector<std::vector<double>> values(kFewTrials, std::vector<double>(n));
      std::vector<BootstrapSample> samples;
      for (size_t i = 0; i < values.size(); ++i) {
        for (double& x : values[i]) x = kind.draw(random);
        samples.push_back({values[i], i});
      }
      const BootstrapOptions options{.resamples = 1000};
      double covered = 0;
      for (const auto& sample : resample_means(samples, options)) {
        covered += calibrated_mean_interval(*sample, options)->contains(1) /
                   static_cast<double>(kFewTrials);
      }
      EXPECT_GE(covered, 0.95 - 2 * kError) << n << " " << kind.name;
      EXPECT_LE(covered, 0.98) << n << " " << kind.name;
    }
  }
}

TEST(CalibratedInterval, OfACombinedRatioCoversIt) {
  constexpr size_t kStrata = 4;
  const Kind kind = skewed();
  Random random(5);
  std::vector<std::vector<double>> values(2 * kStrata * kFewTrials, std::vector<double>(5));
  std::vector<BootstrapSample> samples;
  for (size_t i = 0; i < values.size(); ++i) {
    for (double& x : values[i]) x = kind.draw(random);
    samples.push_back({values[i], i});
  }
  const BootstrapOptions options{.resamples = 1000};
  const auto resampled = resample_means(samples, options);
  double covered = 0;
  for (size_t i = 0; i < values.size(); i += 2 * kStrata) {
    std::vector<RatioPair> pairs;
    for (size_t s = 0; s < 2 * kStrata; s += 2) {
      pairs.push_back({&*resampled[i + s], &*resampled[i + s + 1]});
    }
    covered +=
        calibrated_ratio_interval(pairs, options)->contains(1) / static_cast<double>(kFewTrials);
  }
  EXPECT_GE(covered, 0.95 - 2 * kError);
  EXPECT_LE(covered, 0.98);
}

TEST(CalibratedInterval, IsSymmetricInTheArmsAndFreeOfScale) {
  const std::vector<double> a = {10, 11, 10.5, 14, 10.2};
  const std::vector<double> b = {9, 9.5, 9.1, 9.2, 9.6};
  std::vector<double> large = a;
  for (double& x : large) x *= 1024;
  const BootstrapOptions options{.resamples = 2000};
  const auto of_a = resample_one(a, options, 1);
  const auto of_b = resample_one(b, options, 2);
  const auto of_large = resample_one(large, options, 1);
  const RatioPair there[] = {{&*of_a, &*of_b}};
  const RatioPair back[] = {{&*of_b, &*of_a}};
  const RatioPair scaled[] = {{&*of_large, &*of_b}};
  const auto ratio = calibrated_ratio_interval(there, options);
  EXPECT_NEAR(ratio->low, 1 / calibrated_ratio_interval(back, options)->high, 1e-3);
  EXPECT_NEAR(ratio->high * 1024, calibrated_ratio_interval(scaled, options)->high, 1e-9);
}

TEST(CalibratedInterval, ExistsForTwoValuesAndNotForOneRepeated) {
  const BootstrapOptions options{.resamples = 200};
  const auto two = resample_one(std::vector<double>{1, 1.1}, options, 1);
  EXPECT_TRUE(calibrated_mean_interval(*two, options));
  EXPECT_FALSE(resample_one(std::vector<double>{1, 1}, options, 1));
  EXPECT_NEAR(expansion(5, 4, 0.95), std::sqrt(1.25) * 2.776445 / 1.959964, 1e-6);
}

}  // namespace
}  // namespace assay::stats
