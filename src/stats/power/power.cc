// Power and the minimum detectable effect by the noncentral t distribution.
#include "stats/power/power.h"

#include <array>
#include <cmath>

#include "stats/distributions/root.h"

namespace assay::stats {
namespace {

// The smallest noncentrality that the test finds with that power.
std::optional<double> detectable_shift(double df, double alpha, double power) {
  const auto critical = student_t_quantile(1 - alpha / 2, df);
  const auto reach = student_t_quantile(power, df);
  if (!critical || !reach || !(power > alpha)) return std::nullopt;
  const auto shortfall = [&](double shift) -> std::optional<double> {
    const auto at = t_test_power(shift, {1, df}, alpha);
    return at ? std::optional(*at - power) : std::nullopt;
  };
  // The guess is the root if the noncentral t were a t moved by its noncentrality.
  return rising_root(shortfall, 0, *critical + *reach);
}

}  // namespace

std::optional<double> t_test_power(double difference, const StandardError& error, double alpha) {
  const auto critical = student_t_quantile(1 - alpha / 2, error.df);
  if (!critical || !(error.value > 0)) return std::nullopt;
  const double shift = std::abs(difference) / error.value;
  const auto upper = noncentral_t_upper(*critical, error.df, shift);
  const auto lower = noncentral_t_cdf(-*critical, error.df, shift);
  if (!upper || !lower) return std::nullopt;
  return *upper + *lower;
}

std::optional<double> minimum_detectable_difference(const StandardError& error, double alpha,
                                                    double power) {
  // The pairs of a study mostly have the same degrees of freedom, and a root takes a dozen
  // noncentral distributions: each thread keeps its last one.
  struct KeptShift {
    std::array<double, 3> of = {};  // df, alpha, power; no study has 0 degrees of freedom
    std::optional<double> shift;
  };
  thread_local KeptShift kept;
  const std::array<double, 3> of = {error.df, alpha, power};
  if (kept.of != of) kept = {of, detectable_shift(error.df, alpha, power)};
  return kept.shift ? std::optional(*kept.shift * error.value) : std::nullopt;
}

std::optional<int64_t> repetitions_needed(double d, double alpha, double power) {
  if (!(std::abs(d) > 0) || !(power > alpha)) return std::nullopt;
  const auto enough = [&](int64_t n) -> std::optional<bool> {
    const auto count = static_cast<double>(n);
    const auto at = t_test_power(d, {std::sqrt(2 / count), 2 * count - 2}, alpha);
    return at ? std::optional(*at >= power) : std::nullopt;
  };
  int64_t low = 1;
  int64_t high = 2;
  for (auto is = enough(high); !is || !*is; is = enough(high)) {
    low = high;
    high *= 2;
    if (!is || high > int64_t{1} << 40) return std::nullopt;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const auto is = enough(middle);
    if (!is) return std::nullopt;
    (*is ? high : low) = middle;
  }
  return high;
}

}  // namespace assay::stats
