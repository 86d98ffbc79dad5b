// Intervals, and that of a proportion.
#include "stats/samples/intervals.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "stats/distributions/distributions.h"

namespace assay::stats {

Interval stretched(const Interval& interval, double estimate, double factor) {
  return {estimate * std::pow(interval.low / estimate, factor),
          estimate * std::pow(interval.high / estimate, factor)};
}

Interval exp_of(const Interval& logs) {
  return {std::exp(logs.low), std::exp(logs.high)};
}

std::optional<Interval> wilson_interval(int64_t successes, int64_t n, double confidence) {
  return score_interval(static_cast<double>(successes), static_cast<double>(n), confidence);
}

std::optional<Interval> score_interval(double successes, double n, double confidence) {
  assert(successes >= 0 && successes <= n);
  const auto z = normal_quantile(1 - (1 - confidence) / 2);
  if (n <= 0 || !z) return std::nullopt;
  const double p = successes / n;
  const double z2 = *z * *z;
  const double center = p + z2 / (2 * n);
  const double half = *z * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  const double scale = 1 + z2 / n;
  // At the ends the bound is exactly 0 or 1; subtraction would leave a rounding error there.
  const double low = successes == 0 ? 0 : (center - half) / scale;
  const double high = successes == n ? 1 : (center + half) / scale;
  return Interval{std::max(0.0, low), std::min(1.0, high)};
}

}  // namespace assay::stats
