// The combined ratio of two arms over strata.
#include "stats/ratio.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

double log_scale(const MeanError& x, const MeanError& other, bool apart) {
  const bool known = x.error < kKnown * x.mean && other.error < kKnown * other.mean;
  return apart && known ? x.mean : logarithmic_mean(x.mean, other.mean);
}

std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata) {
  if (strata.empty()) return std::nullopt;
  const auto count = static_cast<double>(strata.size());
  double estimate = 0;
  double square = 0;
  double freedom = 0;  // sum of term^2 / degrees of freedom
  double unsure = 0;   // sum of term sqrt(log_variance)
  const auto add = [&](const Moments& x, const Moments& other, double sign,
                       const StratumMoments& stratum) {
    if (x.n < 2 || other.n < 2 || !(x.mean > 0) || !(other.mean > 0)) return false;
    const Widening& by = stratum.widening;
    const MeanError own = mean_error(x, by);
    const double error = own.error / (log_scale(own, mean_error(other, by), stratum.apart) * count);
    const double term = error * error;
    estimate += sign * std::log(x.mean) / count;
    square += term;
    freedom += term * term / std::max(static_cast<double>(x.n - 1) * by.df, 1.0);
    unsure += term * std::sqrt(by.log_variance);
    return true;
  };
  for (const StratumMoments& stratum : strata) {
    if (!add(stratum.numerator, stratum.denominator, 1, stratum) ||
        !add(stratum.denominator, stratum.numerator, -1, stratum)) {
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
