// The combined ratio of two arms over strata.
#include "stats/estimates/ratio.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions/distributions.h"

namespace assay::stats {
namespace {

constexpr double kKnown = 1.0 / 3;  // the relative error below which the delta method serves

double logarithmic_mean(double a, double b) {
  const double ratio = (a - b) / b;
  return std::abs(ratio) < 1e-9 ? (a + b) / 2 : (a - b) / std::log1p(ratio);
}

MeanError mean_error(const Moments& x, const Widening& widening) {
  return {x.mean, widening.error * std::sqrt(x.variance / static_cast<double>(x.n))};
}

// sqrt((v_a/m_a^2 + v_b/m_b^2 - 2 cov / (m_a m_b)) / n): of a difference of scaled pairs.
double paired_square(const StratumMoments& pair, double scale_a, double scale_b) {
  const double square = pair.numerator.variance / (scale_a * scale_a) +
                        pair.denominator.variance / (scale_b * scale_b) -
                        2 * *pair.covariance / (scale_a * scale_b);
  return std::max(0.0, square) / static_cast<double>(pair.numerator.n);
}

}  // namespace

std::optional<double> covariance(std::span<const double> a, std::span<const double> b) {
  const auto mean_a = mean(a);
  const auto mean_b = mean(b);
  if (a.size() != b.size() || a.size() < 2 || !mean_a || !mean_b) return std::nullopt;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - *mean_a) * (b[i] - *mean_b);
  const double result = sum / static_cast<double>(a.size() - 1);
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

std::optional<StandardError> difference_error(const StratumMoments& pair, double scale) {
  const Moments& b = pair.denominator;
  if (!pair.covariance) {
    const auto welch =
        welch_standard_error(pair.numerator, {b.n, b.mean * scale, b.variance * scale * scale});
    return welch ? std::optional(welch->widened(pair.widening)) : std::nullopt;
  }
  if (pair.numerator.n < 2 || pair.numerator.n != b.n) return std::nullopt;
  const double square = paired_square(pair, 1, 1 / scale);
  if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
  const StandardError error{std::sqrt(square), static_cast<double>(b.n - 1)};
  return error.widened(pair.widening);
}

std::optional<TestResult> tost_ratio(const StratumMoments& pair, double low, double high) {
  const double mean = pair.numerator.mean;
  const double other = pair.denominator.mean;
  if (!(low > 0) || !(mean > 0) || !(other > 0)) return std::nullopt;
  const auto low_error = difference_error(pair, low);
  const auto high_error = difference_error(pair, high);
  if (!low_error || !high_error) return std::nullopt;
  const auto upper = [](double t, const StandardError& error) -> std::optional<TestResult> {
    const auto area = student_t_upper(t, error.df);
    if (!area) return std::nullopt;
    return TestResult{t, error.df, area->p, area->log_p};
  };
  const auto above = upper((mean - low * other) / low_error->value, *low_error);
  auto below = upper((high * other - mean) / high_error->value, *high_error);
  if (!above || !below) return std::nullopt;
  if (above->log_p > below->log_p) return above;
  below->statistic = -below->statistic;
  return below;
}

double log_scale(const MeanError& x, const MeanError& other, bool apart) {
  const bool known = x.error < kKnown * x.mean && other.error < kKnown * other.mean;
  return apart && known ? x.mean : logarithmic_mean(x.mean, other.mean);
}

LogScales log_scales(const StratumMoments& of) {
  const MeanError a = mean_error(of.numerator, of.widening);
  const MeanError b = mean_error(of.denominator, of.widening);
  return {log_scale(a, b, of.apart), log_scale(b, a, of.apart)};
}

std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata) {
  const auto count = static_cast<double>(strata.size());
  double estimate = 0;
  double square = 0;
  double freedom = 0;  // sum of term^2 / degrees of freedom
  double unsure = 0;   // sum of term sqrt(log_variance)
  for (const StratumMoments& stratum : strata) {
    const Moments& a = stratum.numerator;
    const Moments& b = stratum.denominator;
    const bool unequal = stratum.covariance && a.n != b.n;
    if (a.n < 2 || b.n < 2 || unequal || !(a.mean > 0) || !(b.mean > 0)) return std::nullopt;
    const Widening& by = stratum.widening;
    const LogScales scales = log_scales(stratum);
    estimate += std::log(a.mean / b.mean) / count;
    const auto add = [&](double variance_of_mean, int64_t n) {
      const double term = variance_of_mean * by.error * by.error / (count * count);
      square += term;
      freedom += term * term / std::max(static_cast<double>(n - 1) * by.df, 1.0);
      unsure += term * std::sqrt(by.log_variance);
    };
    if (stratum.covariance) {
      add(paired_square(stratum, scales.numerator, scales.denominator), a.n);
      continue;
    }
    const auto n_a = static_cast<double>(a.n);
    const auto n_b = static_cast<double>(b.n);
    add(a.variance / n_a / (scales.numerator * scales.numerator), a.n);
    add(b.variance / n_b / (scales.denominator * scales.denominator), b.n);
  }
  if (!(square > 0) || !(freedom > 0)) return std::nullopt;
  const double df = square * square / (freedom + unsure * unsure / 2);
  return LogRatio{estimate, {std::sqrt(square), std::max(df, 1.0)}};
}

std::optional<TestResult> log_ratio_test(const LogRatio& ratio) {
  const double t = ratio.estimate / ratio.error.value;
  const auto area = student_t_two_sided(t, ratio.error.df);
  if (!area) return std::nullopt;
  return TestResult{t, ratio.error.df, area->p, area->log_p};
}

std::optional<Interval> quotient_interval(const Known& a, const Known& b, double tail) {
  const auto end = [&](double side) -> std::optional<double> {
    double ratio = a.value / b.value;
    // The degrees of freedom hardly change with the ratio.
    for (int i = 0; i < 20; ++i) {
      const StandardError parts[] = {a.error, {b.error.value * std::abs(ratio), b.error.df}};
      const auto error = error_of_sum(parts);
      const auto t = error ? student_t_quantile(1 - tail, error->df) : std::nullopt;
      if (!t) return std::nullopt;
      const double of_a = *t * a.error.value;
      const double of_b = *t * b.error.value;
      const double scale = b.value * b.value - of_b * of_b;
      if (!(scale > 0)) return std::nullopt;
      const double square = a.value * a.value * of_b * of_b + b.value * b.value * of_a * of_a -
                            of_a * of_a * of_b * of_b;
      ratio = (a.value * b.value + side * std::sqrt(square)) / scale;
    }
    return ratio;
  };
  const auto low = end(-1);
  const auto high = end(1);
  return low && high ? std::optional(Interval{*low, *high}) : std::nullopt;
}

}  // namespace assay::stats
