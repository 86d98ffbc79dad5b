// Boost.Math behind a policy that answers NaN instead of throwing.
#include "stats/distributions/distributions.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/log1p.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
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

// log(1 + x) - x
double log1p_less(double x) {
  return std::abs(x) < 0.5 ? bm::log1pmx(x, Quiet()) : std::log1p(x) - x;
}

// ln Gamma(x) less Stirling's (x - 1/2) ln x - x + ln(2 pi) / 2.
double stirling_rest(double x) {
  if (x < 20) {
    return log_gamma(x) - (x - 0.5) * std::log(x) + x - std::log(2 * std::numbers::pi) / 2;
  }
  const double w = 1 / (x * x);
  return (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w / 1680))) / x;
}

// ln P(F > f) where the value itself can't be held in a double: f is far above 1. It is I_x(a, b)
// with a = df2 / 2, b = df1 / 2 and x = 1 / (1 + r), r = df1 f / df2.
// Written with the distances of x and 1 - x from their means (a and b over a + b), as Loader
// (2000) writes the binomial distribution: differences of ln Gamma and of logarithms would lose as
// many digits as the degrees of freedom have.
class LogTailOfF {
 public:
  // `log_f` is ln f, also where f overflows.
  LogTailOfF(double f, double log_f, double df1, double df2)
      : a_(df2 / 2), b_(df1 / 2), log_f_(log_f), quotient_(df1 / df2), r_(quotient_ * f) {
    beyond_ = (1 - 1 / f) / (1 / f + quotient_);
  }

  double value() const {
    const double n = a_ + b_;
    const double scale = std::log(a_ / n * b_ / (2 * std::numbers::pi)) / 2;
    const double rest = stirling_rest(n) - stirling_rest(a_) - stirling_rest(b_);
    return deviance() + scale + rest - std::log(fraction());
  }

 private:
  // a ln(x n / a) + b ln((1 - x) n / b)
  double deviance() const {
    const double below = -quotient_ * beyond_;  // x n / a - 1; beyond_ is (1 - x) n / b - 1
    if (std::abs(below) < 0.5 && beyond_ < 0.5) {
      return a_ * log1p_less(below) + b_ * log1p_less(beyond_);  // a below + b beyond_ is 0
    }
    const double log_rest = r_ < 1e17 ? std::log1p(r_) : std::log(quotient_) + log_f_;
    const double log_x = std::log1p(quotient_) - log_rest;
    return a_ * log_x + b_ * (log_f_ + log_x);
  }

  // The continued fraction of DiDonato and Morris (1992), by Lentz's method.
  double fraction() const {
    const double x = 1 / (1 + r_);
    const auto divisor = [&](double m) {
      const double first = m > 0 ? m * (b_ - m) * x / (a_ + 2 * m - 1) : 0;
      return m + first + (a_ + m) / (a_ + 2 * m + 1) * (b_ * beyond_ + 1 + m * (2 - x));
    };
    double value = divisor(0);
    double c = value;
    double d = 0;
    for (int k = 1; k < 100000; ++k) {
      const double m = k;
      const double below = a_ + 2 * m - 1;
      const double numerator =
          m * (a_ + m - 1) / below * ((a_ + b_ + m - 1) / below) * (b_ - m) * x * x;
      const double next = divisor(m);
      d = 1 / (next + numerator * d);
      c = next + numerator / c;
      value *= c * d;
      if (std::abs(c * d - 1) < 1e-16) break;
    }
    return value;
  }

  double a_, b_, log_f_, quotient_, r_;
  double beyond_ = 0;
};

// ln P(T > t) for large t: half of P(F > t^2).
double log_t_tail(double t, double df) {
  return LogTailOfF(t * t, 2 * std::log(t), 1, df).value() - std::log(2.0);
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
  // x^a e^-x / Gamma(a), by the distance of x from a
  const double power =
      a * log1p_less((x - a) / a) + std::log(a / (2 * std::numbers::pi)) / 2 - stirling_rest(a);
  return power + std::log(h);
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
  return TailArea{p, LogTailOfF(f, std::log(f), df1, df2).value()};
}

std::optional<TailArea> chi_square_upper(double x, double df) {
  if (!(x >= 0) || !std::isfinite(x) || !(df > 0) || !std::isfinite(df)) return std::nullopt;
  const double p = bm::cdf(bm::complement(ChiSquare(df), x));
  if (!std::isfinite(p)) return std::nullopt;
  if (p > kTiny) return TailArea{p, std::log(p)};
  return TailArea{p, log_gamma_tail(df / 2, x / 2)};
}

std::optional<double> beta_quantile(double p, double a, double b) {
  if (!(p > 0 && p < 1) || !(a > 0) || !(b > 0) || !std::isfinite(a) || !std::isfinite(b)) {
    return std::nullopt;
  }
  return finite(bm::ibeta_inv(a, b, p, Quiet()));
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

double digamma(double x) {
  return bm::digamma(x, Quiet());
}

double trigamma(double x) {
  return bm::trigamma(x, Quiet());
}

double tetragamma(double x) {
  return bm::polygamma(2, x, Quiet());
}

}  // namespace assay::stats
