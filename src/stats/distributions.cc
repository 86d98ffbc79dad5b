// Boost.Math behind a policy that answers NaN instead of throwing.
#include "stats/distributions.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <exception>
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
using FisherF = bm::fisher_f_distribution<double, Quiet>;
using ChiSquare = bm::chi_squared_distribution<double, Quiet>;
using Normal = bm::normal_distribution<double, Quiet>;

constexpr double kTiny = 1e-290;  // below, doubles lose digits and then underflow

std::optional<double> finite(double x) {
  return std::isfinite(x) ? std::optional(x) : std::nullopt;
}

// ln I_x(a, b) where the value itself can't be held in a double: the tail that x is in is tiny, so
// the series' terms fall from the first on.
double log_small_beta(double a, double b, double log_x, double log_rest) {
  const double x = std::exp(log_x);
  double sum = 1;
  double term = 1;
  for (int k = 0; k < 100000 && term > sum * 1e-17; ++k) {
    term *= x * (a + b + k) / (a + 1 + k);
    sum += term;
  }
  const double log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b);
  return a * log_x + b * log_rest - std::log(a) - log_beta + std::log(sum);
}

// ln P(T > t) for t > 0: x = df / (df + t^2).
double log_t_tail(double t, double df) {
  return log_small_beta(df / 2, 0.5, -std::log1p(t / df * t), -std::log1p(df / t / t)) -
         std::log(2.0);
}

// ln Q(a, x) for x well above a: Legendre's continued fraction by Lentz's method.
double log_gamma_tail(double a, double x) {
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int k = 1; k < 10000; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    h *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return a * std::log(x) - x - log_gamma(a) + std::log(h);
}

// Boost's series starts near noncentrality^2 / 2, which must be an int, and some of its inner calls
// throw whatever the policy.
template <typename Area>
std::optional<double> noncentral_t_area(double t, double df, double noncentrality,
                                        const Area& area) {
  constexpr double kFarthest = 3e4;
  if (!(df > 0) || !std::isfinite(df) || !std::isfinite(t) ||
      !(std::abs(noncentrality) <= kFarthest)) {
    return std::nullopt;
  }
  try {
    return finite(area(NoncentralT(df, noncentrality), t));
  } catch (const std::exception&) {
    return std::nullopt;
  }
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
  return noncentral_t_area(t, df, noncentrality, [](const NoncentralT& distribution, double at) {
    return bm::cdf(distribution, at);
  });
}

std::optional<double> noncentral_t_upper(double t, double df, double noncentrality) {
  return noncentral_t_area(t, df, noncentrality, [](const NoncentralT& distribution, double at) {
    return bm::cdf(bm::complement(distribution, at));
  });
}

std::optional<TailArea> f_upper(double f, double df1, double df2) {
  if (!(f >= 0) || !std::isfinite(f) || !(df1 > 0) || !(df2 > 0)) return std::nullopt;
  if (!std::isfinite(df1) || !std::isfinite(df2)) return std::nullopt;
  if (f == 0) return TailArea{};
  const double p = bm::cdf(bm::complement(FisherF(df1, df2), f));
  if (!std::isfinite(p)) return std::nullopt;
  if (p > kTiny) return TailArea{p, std::log(p)};
  const double ratio = df1 * f / df2;
  return TailArea{p, log_small_beta(df2 / 2, df1 / 2, -std::log1p(ratio), -std::log1p(1 / ratio))};
}

std::optional<TailArea> chi_square_upper(double x, double df) {
  if (!(x >= 0) || !std::isfinite(x) || !(df > 0) || !std::isfinite(df)) return std::nullopt;
  const double p = bm::cdf(bm::complement(ChiSquare(df), x));
  if (!std::isfinite(p)) return std::nullopt;
  if (p > kTiny) return TailArea{p, std::log(p)};
  return TailArea{p, log_gamma_tail(df / 2, x / 2)};
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

TailArea normal_upper(double z) {
  const double p = std::erfc(z / std::numbers::sqrt2) / 2;
  if (p > kTiny) return {p, std::log(p)};
  return {p, log_normal_tail(z)};
}

double log_gamma(double x) {
  return bm::lgamma(x, Quiet());
}

}  // namespace assay::stats
