// Boost.Math behind a policy that answers NaN instead of throwing.
#include "stats/distributions.h"

#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

namespace assay::stats {
namespace {

namespace bm = boost::math;
namespace bp = boost::math::policies;
using Quiet = bp::policy<bp::domain_error<bp::ignore_error>, bp::pole_error<bp::ignore_error>,
                         bp::overflow_error<bp::ignore_error>, bp::rounding_error<bp::ignore_error>,
                         bp::evaluation_error<bp::ignore_error>, bp::promote_double<false>>;
using StudentT = bm::students_t_distribution<double, Quiet>;
using NoncentralT = bm::non_central_t_distribution<double, Quiet>;
using Normal = bm::normal_distribution<double, Quiet>;

constexpr double kTiny = 1e-290;  // below, doubles lose digits and then underflow

std::optional<double> finite(double x) {
  return std::isfinite(x) ? std::optional(x) : std::nullopt;
}

// ln P(T > t) for t > 0 where the area itself can't be held in a double.
double log_t_tail(double t, double df) {
  const double a = df / 2;
  const double b = 0.5;
  const double log_x = -std::log1p(t * t / df);
  const double x = std::exp(log_x);
  const double log_rest = -std::log1p(df / (t * t));  // ln(1 - x)
  const double log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b);
  double sum = 1;
  double term = 1;
  for (int k = 0; k < 100000 && term > sum * 1e-17; ++k) {
    term *= x * (a + b + k) / (a + 1 + k);
    sum += term;
  }
  return a * log_x + b * log_rest - std::log(a) - log_beta + std::log(sum) - std::log(2.0);
}

// ln P(Z > z) for large z: the asymptotic series (DLMF 7.12.1).
double log_normal_tail(double z) {
  const double w = 1 / (z * z);
  return -z * z / 2 - std::log(z * std::sqrt(2 * std::numbers::pi)) +
         std::log1p(-w + 3 * w * w - 15 * w * w * w);
}

}  // namespace

std::optional<TailArea> student_t_upper(double t, double df) {
  if (!std::isfinite(t) || !(df > 0) || !std::isfinite(df)) return std::nullopt;
  const double p = bm::cdf(bm::complement(StudentT(df), t));
  if (!std::isfinite(p)) return std::nullopt;
  if (p > kTiny) return TailArea{p, std::log(p)};
  return TailArea{p, log_t_tail(t, df)};
}

std::optional<TailArea> student_t_two_sided(double t, double df) {
  auto area = student_t_upper(std::abs(t), df);
  if (!area) return std::nullopt;
  return TailArea{area->p * 2, area->log_p + std::log(2.0)};
}

std::optional<double> student_t_quantile(double p, double df) {
  if (!(p > 0 && p < 1) || !(df > 0) || !std::isfinite(df)) return std::nullopt;
  return finite(bm::quantile(StudentT(df), p));
}

std::optional<double> noncentral_t_cdf(double t, double df, double noncentrality) {
  if (!(df > 0) || !std::isfinite(df) || !std::isfinite(t) || !std::isfinite(noncentrality)) {
    return std::nullopt;
  }
  return finite(bm::cdf(NoncentralT(df, noncentrality), t));
}

double normal_cdf(double z) {
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

std::optional<double> normal_quantile(double p) {
  if (!(p > 0 && p < 1)) return std::nullopt;
  return finite(bm::quantile(Normal(), p));
}

TailArea normal_two_sided(double z) {
  const double p = std::erfc(std::abs(z) / std::numbers::sqrt2);
  if (p > kTiny) return {p, std::log(p)};
  return {p, log_normal_tail(std::abs(z)) + std::log(2.0)};
}

double log_gamma(double x) {
  return bm::lgamma(x, Quiet());
}

}  // namespace assay::stats
