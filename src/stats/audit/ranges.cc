// Ranges of tail areas and quantiles.
#include "stats/audit/ranges.h"

#include "stats/distributions/distributions.h"

namespace assay::stats {
namespace {

double upper(double t, double df) {
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  if (std::isinf(df)) return normal_upper(t).p;
  const auto area = student_t_upper(t, df);
  return area ? area->p : std::nan("");
}

Interval as_probability(const Interval& p) {
  return {std::max(0.0, p.low), std::min(1.0, p.high)};
}

}  // namespace

Interval upper_tail(const Interval& t, const Interval& df) {
  return as_probability(over_corners(upper, t, df));
}

Interval two_sided_tail(const Interval& t, const Interval& df) {
  const Interval one = over_corners(upper, absolute(t), df);
  return as_probability({2 * one.low, 2 * one.high});
}

Interval t_quantile(double p, const Interval& df) {
  return over_corners(
      [=](double freedom) {
        const auto q = std::isinf(freedom) ? normal_quantile(p) : student_t_quantile(p, freedom);
        return q.value_or(std::nan(""));
      },
      df);
}

}  // namespace assay::stats
