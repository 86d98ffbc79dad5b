// Tests of two independent samples that rest on means: Welch and TOST.
#include "stats/hypotheses/tests.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace assay::stats {
namespace {

Moments scaled(const Moments& x, double factor) {
  return {x.n, x.mean * factor, x.variance * factor * factor};
}

// The one-sided test with the larger p decides.
std::optional<TestResult> larger(const std::optional<TestResult>& a,
                                 const std::optional<TestResult>& b) {
  if (!a || !b) return std::nullopt;
  return a->p > b->p || (a->p == b->p && a->log_p > b->log_p) ? a : b;
}

}  // namespace

StandardError StandardError::widened(const Widening& by) const {
  return {value * by.error, std::max(1.0, 1 / (1 / (df * by.df) + by.log_variance / 2))};
}

double interval_widening(double df, const Widening& by, double confidence) {
  if (by.error <= 1 && by.df <= 1) return 1;
  constexpr double kLeast = 3;
  const double level = 1 - (1 - confidence) / 2;
  const double fewer = StandardError{1, df}.widened(by).df;
  const auto wide = student_t_quantile(level, std::max(fewer, kLeast));
  const auto narrow = student_t_quantile(level, std::max(df, kLeast));
  return wide && narrow ? by.error * *wide / *narrow : by.error;
}

StandardError error_of_mean(const Moments& of) {
  const auto n = static_cast<double>(of.n);
  return {std::sqrt(of.variance / n), n - 1};
}

std::optional<StandardError> error_of_sum(std::span<const StandardError> parts) {
  double square = 0;
  for (const StandardError& part : parts) square += part.value * part.value;
  if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
  double inverse = 0;  // of the degrees of freedom
  for (const StandardError& part : parts) {
    const double share = part.value * part.value / square;  // so that no square of it underflows
    if (share > 0) inverse += share * share / part.df;
  }
  return StandardError{std::sqrt(square), 1 / inverse};
}

std::optional<StandardError> welch_standard_error(const Moments& a, const Moments& b) {
  if (a.n < 2 || b.n < 2) return std::nullopt;
  const StandardError parts[] = {error_of_mean(a), error_of_mean(b)};
  return error_of_sum(parts);
}

std::optional<StandardError> pooled_standard_error(const Moments& a, const Moments& b) {
  if (a.n < 2 || b.n < 2) return std::nullopt;
  const auto n_a = static_cast<double>(a.n);
  const auto n_b = static_cast<double>(b.n);
  const double df = n_a + n_b - 2;
  const double pooled = (n_a - 1) / df * a.variance + (n_b - 1) / df * b.variance;
  const double square = pooled * (1 / n_a + 1 / n_b);
  if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
  return StandardError{std::sqrt(square), df};
}

std::optional<TestResult> t_test(double estimate, const StandardError& error) {
  if (!(error.value > 0)) return std::nullopt;
  const double t = estimate / error.value;
  const auto area = student_t_two_sided(t, error.df);
  if (!area) return std::nullopt;
  return TestResult{t, error.df, area->p, area->log_p};
}

std::optional<TestResult> t_test_above(double estimate, const StandardError& error) {
  if (!(error.value > 0)) return std::nullopt;
  const double t = estimate / error.value;
  const auto area = student_t_upper(t, error.df);
  if (!area) return std::nullopt;
  return TestResult{t, error.df, area->p, area->log_p};
}

std::optional<TestResult> t_test_below(double estimate, const StandardError& error) {
  auto result = t_test_above(-estimate, error);
  if (result) result->statistic = -result->statistic;
  return result;
}

std::optional<Interval> t_interval(double estimate, const StandardError& error, double confidence) {
  const auto t = student_t_quantile(1 - (1 - confidence) / 2, error.df);
  if (!t || !std::isfinite(estimate)) return std::nullopt;
  return Interval{estimate - *t * error.value, estimate + *t * error.value};
}

std::optional<Interval> t_interval_of_ratio(double log_ratio, const StandardError& error,
                                            double confidence) {
  const auto logs = t_interval(log_ratio, error, confidence);
  return logs ? std::optional(exp_of(*logs)) : std::nullopt;
}

std::optional<TestResult> student_t(const Moments& a, const Moments& b) {
  const auto error = pooled_standard_error(a, b);
  return error ? t_test(a.mean - b.mean, *error) : std::nullopt;
}

std::optional<TestResult> tost(double estimate, const StandardError& error, double low,
                               double high) {
  assert(low < high);
  if (!(error.value > 0)) return std::nullopt;
  return larger(t_test_above(estimate - low, error), t_test_below(estimate - high, error));
}

std::optional<TestResult> tost_ratio(const Moments& a, const Moments& b, double low, double high,
                                     const Widening& widening) {
  assert(low < high);
  if (!(low > 0) || !(a.mean > 0) || !(b.mean > 0)) return std::nullopt;
  const auto low_error = welch_standard_error(a, scaled(b, low));
  const auto high_error = welch_standard_error(a, scaled(b, high));
  if (!low_error || !high_error) return std::nullopt;
  return larger(t_test_above(a.mean - low * b.mean, low_error->widened(widening)),
                t_test_below(a.mean - high * b.mean, high_error->widened(widening)));
}

}  // namespace assay::stats
