// Placements and variances by cluster.
#include "stats/estimates/clusters.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions/distributions.h"
#include "stats/hypotheses/effect.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// For each value, the number of the other sample's values that are smaller; equal ones count half.
std::vector<double> places_among(std::span<const double> values, std::span<const double> sorted) {
  std::vector<double> places;
  places.reserve(values.size());
  for (const double value : values) {
    const auto low = std::ranges::lower_bound(sorted, value);
    const auto high = std::upper_bound(low, sorted.end(), value);
    places.push_back(static_cast<double>((low - sorted.begin()) + (high - sorted.begin())) / 2);
  }
  return places;
}

// The same of ascending values, in one pass over both.
std::vector<double> placements_in_order(std::span<const double> values,
                                        std::span<const double> sorted) {
  std::vector<double> places;
  places.reserve(values.size());
  size_t low = 0;
  size_t high = 0;
  for (const double value : values) {
    while (low < sorted.size() && sorted[low] < value) ++low;
    high = std::max(high, low);
    while (high < sorted.size() && sorted[high] == value) ++high;
    places.push_back(static_cast<double>(low + high) / 2);
  }
  return places;
}

size_t count_of(std::span<const size_t> a, std::span<const size_t> b) {
  size_t most = 0;
  for (const auto clusters : {a, b}) {
    for (const size_t number : clusters) most = std::max(most, number + 1);
  }
  return most;
}

// Each cluster's term in the error of A: the sum of its values' placements as shares, less the mean
// share once for each value, over the sample's size.
std::vector<double> cluster_adds(std::span<const double> places, std::span<const size_t> cluster,
                                 double other, double mean_share, size_t clusters) {
  std::vector<double> sums(clusters, 0.0);
  for (size_t i = 0; i < places.size(); ++i) sums[cluster[i]] += places[i] / other - mean_share;
  for (double& sum : sums) sum /= static_cast<double>(places.size());
  return sums;
}

std::vector<bool> occupied(std::span<const size_t> cluster, size_t clusters) {
  std::vector<bool> has(clusters, false);
  for (const size_t number : cluster) has[number] = true;
  return has;
}

// k / (k - 1) times the sum of squares, of k clusters: their mean is 0.
double squared_error(std::span<const double> sums, size_t count) {
  double square = 0;
  for (const double sum : sums) square += sum * sum;
  const auto k = static_cast<double>(count);
  return square * k / (k - 1);
}

std::optional<StandardError> joint_error(double square_a, double df_a, double square_b,
                                         double df_b) {
  const double square = square_a + square_b;
  if (!(square > 0)) return std::nullopt;
  return StandardError{std::sqrt(square),
                       square * square / (square_a * square_a / df_a + square_b * square_b / df_b)};
}

// t test and interval of A on the scale of logits. 0 < a < 1.
struct LogitTest {
  Interval interval;
  TailArea area;
};
std::optional<LogitTest> logit_test(double a, const StandardError& error, double confidence) {
  const double logit = std::log(a / (1 - a));
  const StandardError scaled{error.value / (a * (1 - a)), error.df};
  const auto test = t_test(logit, scaled);
  const auto interval = t_interval(logit, scaled, confidence);
  if (!test || !interval) return std::nullopt;
  const auto share = [](double x) { return 1 / (1 + std::exp(-x)); };
  return LogitTest{{share(interval->low), share(interval->high)}, {test->p, test->log_p}};
}

double log_ways(double n, double k) {
  return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
}

struct VarianceParts {
  double within = 0;  // sum of squares
  double between = 0;
  double values = 0;
  double clusters = 0;
  double squared_sizes = 0;  // sum over clusters
};

std::optional<VarianceParts> variance_parts(const ClusteredSample& sample) {
  const auto total = mean(sample.values);
  if (!total) return std::nullopt;
  const size_t clusters = count_of(sample.cluster, {});
  std::vector<double> sums(clusters, 0.0);
  std::vector<double> sizes(clusters, 0.0);
  for (size_t i = 0; i < sample.values.size(); ++i) {
    sums[sample.cluster[i]] += sample.values[i] - *total;
    sizes[sample.cluster[i]] += 1;
  }
  VarianceParts part;
  part.values = static_cast<double>(sample.values.size());
  for (size_t c = 0; c < clusters; ++c) {
    if (sizes[c] == 0) continue;
    part.clusters += 1;
    part.squared_sizes += sizes[c] * sizes[c];
    part.between += sums[c] * sums[c] / sizes[c];
  }
  for (size_t i = 0; i < sample.values.size(); ++i) {
    const size_t c = sample.cluster[i];
    const double rest = sample.values[i] - *total - sums[c] / sizes[c];
    part.within += rest * rest;
  }
  return part.clusters < 2 ? std::nullopt : std::optional(part);
}

}  // namespace

std::optional<ClusteredRankTest> rank_clusters(const ClusteredSample& a, const ClusteredSample& b,
                                               bool paired, const Widening& widening,
                                               double confidence) {
  if (a.values.empty() || b.values.empty()) return std::nullopt;
  const auto n_a = static_cast<double>(a.values.size());
  const auto n_b = static_cast<double>(b.values.size());
  const std::vector<double> places_a = places_among(a.values, sorted(b.values));
  const std::vector<double> places_b = places_among(b.values, sorted(a.values));
  ClusteredRankTest test;
  for (const double place : places_a) test.u += place;
  test.a = test.u / n_a / n_b;
  const size_t clusters = count_of(a.cluster, b.cluster);
  const std::vector<bool> has_a = occupied(a.cluster, clusters);
  const std::vector<bool> has_b = occupied(b.cluster, clusters);
  const auto k_a = static_cast<size_t>(std::ranges::count(has_a, true));
  const auto k_b = static_cast<size_t>(std::ranges::count(has_b, true));
  if (k_a < 2 || k_b < 2) return test;
  std::vector<double> of_a = cluster_adds(places_a, a.cluster, n_b, test.a, clusters);
  std::vector<double> of_b = cluster_adds(places_b, b.cluster, n_a, 1 - test.a, clusters);
  std::optional<StandardError> error;
  size_t rounds = 0;
  if (paired) {
    for (size_t c = 0; c < clusters; ++c) {
      rounds += has_a[c] || has_b[c];
      of_a[c] -= of_b[c];
    }
    const double square = squared_error(of_a, rounds);
    if (square > 0) error = StandardError{std::sqrt(square), static_cast<double>(rounds - 1)};
  } else {
    error = joint_error(squared_error(of_a, k_a), static_cast<double>(k_a - 1),
                        squared_error(of_b, k_b), static_cast<double>(k_b - 1));
  }
  if (test.a == 0 || test.a == 1) {
    const double ways = paired ? static_cast<double>(rounds) * std::log(2.0)
                               : log_ways(static_cast<double>(k_a + k_b), static_cast<double>(k_a));
    test.log_p = std::min(0.0, std::log(2.0) - ways);
    test.p = std::exp(*test.log_p);
    test.exact = true;
    return test;
  }
  const auto logit =
      error ? logit_test(test.a, error->widened(widening), confidence) : std::nullopt;
  if (logit) {
    test.a_interval = logit->interval;
    test.p = logit->area.p;
    test.log_p = logit->area.log_p;
  }
  return test;
}

std::optional<Interval> superiority_interval(std::span<const double> sorted_a,
                                             std::span<const double> sorted_b,
                                             const Widening& widening, double confidence) {
  const auto of_a = moments(placements_in_order(sorted_a, sorted_b));
  const auto of_b = moments(placements_in_order(sorted_b, sorted_a));
  if (!of_a || !of_b) return std::nullopt;
  const auto n_a = static_cast<double>(sorted_a.size());
  const auto n_b = static_cast<double>(sorted_b.size());
  const double a = of_a->mean / n_b;
  const auto error = joint_error(of_a->variance / (n_b * n_b * n_a), n_a - 1,
                                 of_b->variance / (n_a * n_a * n_b), n_b - 1);
  if (!error || !(a > 0) || !(a < 1)) return std::nullopt;
  const auto logit = logit_test(a, error->widened(widening), confidence);
  return logit ? std::optional(logit->interval) : std::nullopt;
}

std::optional<TotalVariance> total_variance(const ClusteredSample& a, const ClusteredSample& b) {
  const auto of_a = variance_parts(a);
  const auto of_b = variance_parts(b);
  if (!of_a || !of_b) return std::nullopt;
  const double between_df = of_a->clusters + of_b->clusters - 2;
  const double values = of_a->values + of_b->values;
  const double within_df = values - of_a->clusters - of_b->clusters;
  const double between = (of_a->between + of_b->between) / between_df;
  TotalVariance total;
  if (within_df < 1) {
    total = {between, between_df};
  } else {
    const double within = (of_a->within + of_b->within) / within_df;
    const double size =
        (values - of_a->squared_sizes / of_a->values - of_b->squared_sizes / of_b->values) /
        between_df;
    if (between <= within) {  // clusters show nothing of their own
      const double df = between_df + within_df;
      total = {(between * between_df + within * within_df) / df, df};
    } else {
      const double share_of_between = between / size;
      const double share_of_within = within * (1 - 1 / size);
      total.variance = share_of_between + share_of_within;
      total.df = total.variance * total.variance /
                 (share_of_between * share_of_between / between_df +
                  share_of_within * share_of_within / within_df);
    }
  }
  if (!(total.variance > 0) || !std::isfinite(total.variance)) return std::nullopt;
  return total;
}

std::optional<TotalVariance> total_variance(const Moments& a, const Moments& b) {
  if (a.n < 2 || b.n < 2) return std::nullopt;
  const auto df_a = static_cast<double>(a.n - 1);
  const auto df_b = static_cast<double>(b.n - 1);
  const double df = df_a + df_b;
  const TotalVariance total{df_a / df * a.variance + df_b / df * b.variance, df};
  if (!(total.variance > 0) || !std::isfinite(total.variance)) return std::nullopt;
  return total;
}

StandardizedDifference standardized(double difference, const TotalVariance& total,
                                    const std::optional<StandardError>& error, double confidence) {
  StandardizedDifference result;
  result.d = difference / std::sqrt(total.variance);
  const auto correction = hedges_correction(total.df);
  if (correction) result.g = result.d * *correction;
  if (!error) return result;
  const double square = error->value * error->value / total.variance;
  result.d_interval = t_interval(
      result.d, {std::sqrt(square + result.d * result.d / (2 * total.df)), error->df}, confidence);
  if (correction && result.d_interval) {
    result.g_interval =
        Interval{result.d_interval->low * *correction, result.d_interval->high * *correction};
  }
  return result;
}

}  // namespace assay::stats
