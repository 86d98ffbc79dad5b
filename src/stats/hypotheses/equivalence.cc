// Two one-sided tests, and the values at which each would be on the edge.
#include "stats/hypotheses/equivalence.h"

#include <cmath>

#include "stats/distributions/root.h"

namespace assay::stats {
namespace {

StandardError error_at(const Moments& a, const Moments& b, double ratio) {
  const auto error = welch_standard_error(a, {b.n, b.mean * ratio, b.variance * ratio * ratio});
  return error.value_or(StandardError{});
}

}  // namespace

std::optional<Equivalence> equivalence(double estimate, const StandardError& error, double low,
                                       double high, double alpha) {
  const auto above_low = t_test_above(estimate - low, error);
  const auto below_high = t_test_below(estimate - high, error);
  if (!above_low || !below_high) return std::nullopt;
  return Equivalence{estimate, *above_low, *below_high, t_interval(estimate, error, 1 - 2 * alpha)};
}

std::optional<Equivalence> equivalence_of_ratio(const Moments& a, const Moments& b, double low,
                                                double high, double alpha) {
  if (!(low > 0) || !(a.mean > 0) || !(b.mean > 0)) return std::nullopt;
  const auto above_ratio = [&](double ratio) {
    return t_test_above(a.mean - ratio * b.mean, error_at(a, b, ratio));
  };
  const auto below_ratio = [&](double ratio) {
    return t_test_below(a.mean - ratio * b.mean, error_at(a, b, ratio));
  };
  const auto above_low = above_ratio(low);
  const auto below_high = below_ratio(high);
  if (!above_low || !below_high) return std::nullopt;
  Equivalence found{a.mean / b.mean, *above_low, *below_high, std::nullopt};
  // Up to the estimate p of being above rises to 1/2; from there p of being below falls.
  const double middle = std::log(found.estimate);
  const auto from = rising_root(
      [&](double log_ratio) -> std::optional<double> {
        const auto test = above_ratio(std::exp(log_ratio));
        return test ? std::optional(test->p - alpha) : std::nullopt;
      },
      middle - 0.1, middle);
  const auto to = rising_root(
      [&](double log_ratio) -> std::optional<double> {
        const auto test = below_ratio(std::exp(log_ratio));
        return test ? std::optional(alpha - test->p) : std::nullopt;
      },
      middle, middle + 0.1);
  if (from && to) found.interval = exp_of({*from, *to});
  return found;
}

}  // namespace assay::stats
