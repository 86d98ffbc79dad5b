// Power and the minimum detectable effect by the noncentral t distribution.
#include "stats/power.h"

#include <cmath>

namespace assay::stats {

std::optional<double> t_test_power(double difference, const StandardError& error, double alpha) {
  const auto critical = student_t_quantile(1 - alpha / 2, error.df);
  if (!critical || !(error.value > 0)) return std::nullopt;
  const double shift = std::abs(difference) / error.value;
  const auto upper = noncentral_t_cdf(*critical, error.df, shift);
  const auto lower = noncentral_t_cdf(-*critical, error.df, shift);
  if (!upper || !lower) return std::nullopt;
  return 1 - *upper + *lower;
}

std::optional<double> minimum_detectable_difference(const StandardError& error, double alpha,
                                                    double power) {
  const StandardError unit{1, error.df};
  double low = 0;
  double high = 1;
  for (auto at = t_test_power(high, unit, alpha); at && *at < power;
       at = t_test_power(high, unit, alpha)) {
    low = high;
    high *= 2;
    if (high > 1e6) return std::nullopt;  // one or two degrees of freedom at a tiny alpha
  }
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    const auto at = t_test_power(middle, unit, alpha);
    if (!at) return std::nullopt;
    (*at < power ? low : high) = middle;
  }
  return (low + high) / 2 * error.value;
}

}  // namespace assay::stats
