// The combined ratio of two arms over strata.
#include "stats/ratio.h"

#include <algorithm>
#include <cmath>

namespace assay::stats {

double logarithmic_mean(double a, double b) {
  const double ratio = (a - b) / b;
  return std::abs(ratio) < 1e-9 ? (a + b) / 2 : (a - b) / std::log1p(ratio);
}

std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata) {
  if (strata.empty()) return std::nullopt;
  const auto count = static_cast<double>(strata.size());
  double estimate = 0;
  double square = 0;
  double freedom = 0;  // sum of term^2 / degrees of freedom
  double unsure = 0;   // sum of term sqrt(log_variance)
  const auto add = [&](const Moments& x, const Moments& other, double sign, const Widening& by) {
    if (x.n < 2 || !(x.mean > 0) || !(other.mean > 0)) return false;
    const double scale = by.error / (logarithmic_mean(x.mean, other.mean) * count);
    const double term = x.variance / static_cast<double>(x.n) * scale * scale;
    estimate += sign * std::log(x.mean) / count;
    square += term;
    freedom += term * term / std::max(static_cast<double>(x.n - 1) * by.df, 1.0);
    unsure += term * std::sqrt(by.log_variance);
    return true;
  };
  for (const StratumMoments& stratum : strata) {
    const auto& [numerator, denominator, widening] = stratum;
    if (!add(numerator, denominator, 1, widening) || !add(denominator, numerator, -1, widening)) {
      return std::nullopt;
    }
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

}  // namespace assay::stats
