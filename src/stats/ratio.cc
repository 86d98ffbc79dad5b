// The combined ratio of two arms over strata.
#include "stats/ratio.h"

#include <cmath>

namespace assay::stats {

std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata) {
  if (strata.empty()) return std::nullopt;
  const auto count = static_cast<double>(strata.size());
  double estimate = 0;
  double square = 0;
  double freedom = 0;  // sum of term^2 / (n - 1)
  const auto add = [&](const Moments& x, double sign) {
    if (x.n < 2 || !(x.mean > 0)) return false;
    const double term = x.variance / (static_cast<double>(x.n) * x.mean * x.mean * count * count);
    estimate += sign * std::log(x.mean) / count;
    square += term;
    freedom += term * term / static_cast<double>(x.n - 1);
    return true;
  };
  for (const StratumMoments& stratum : strata) {
    if (!add(stratum.numerator, 1) || !add(stratum.denominator, -1)) return std::nullopt;
  }
  if (!(square > 0) || !(freedom > 0)) return std::nullopt;
  return LogRatio{estimate, {std::sqrt(square), square * square / freedom}};
}

std::optional<TestResult> log_ratio_test(const LogRatio& ratio) {
  const double t = ratio.estimate / ratio.error.value;
  const auto area = student_t_two_sided(t, ratio.error.df);
  if (!area) return std::nullopt;
  return TestResult{t, ratio.error.df, area->p, area->log_p};
}

}  // namespace assay::stats
