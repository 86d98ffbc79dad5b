// The distributions that the tests need, by Boost.Math, behind functions that never throw.
#pragma once

#include <optional>

namespace assay::stats {

// Tail areas keep their logarithm, so that a p far below the smallest double is still reported.
struct TailArea {
  double p = 1;      // 0 where it underflows
  double log_p = 0;  // natural logarithm, finite also where p is 0
};

// P(T > t), Student's t with `df` degrees of freedom (df > 0, need not be whole).
// Beyond the range of doubles the logarithm comes from the continued fraction of the incomplete
// beta function (DiDonato and Morris 1992), with its factor x^a (1-x)^b / B(a, b) in Loader's form
// (2000), for any number of degrees of freedom.
std::optional<TailArea> student_t_upper(double t, double df);
// P(|T| > |t|).
std::optional<TailArea> student_t_two_sided(double t, double df);
// t with P(T <= t) = p, 0 < p < 1.
std::optional<double> student_t_quantile(double p, double df);
// P(T' <= t), noncentral t; absent for a noncentrality beyond 30,000 either way.
std::optional<double> noncentral_t_cdf(double t, double df, double noncentrality);

// P(T' > t), noncentral t.
std::optional<double> noncentral_t_upper(double t, double df, double noncentrality);

// P(F > f), Fisher's F with df1 and df2 degrees of freedom (both > 0, f >= 0); P(X > x), chi-square
// with df (> 0, x >= 0). Logarithms beyond the range of doubles: for F the same fraction, for
// chi-square Legendre's continued fraction (DLMF 8.9.2).
std::optional<TailArea> f_upper(double f, double df1, double df2);
std::optional<TailArea> chi_square_upper(double x, double df);

// x with I_x(a, b) = p, 0 < p < 1, a and b > 0.
std::optional<double> beta_quantile(double p, double a, double b);

// P(Z <= z) and its inverse, standard normal.
double normal_cdf(double z);
std::optional<double> normal_quantile(double p);
// P(|Z| > |z|).
TailArea normal_two_sided(double z);
// P(Z > z).
TailArea normal_upper(double z);

// ln Gamma(x), x > 0; std::lgamma writes a global.
double log_gamma(double x);
// Its first three derivatives.
double digamma(double x);
double trigamma(double x);
double tetragamma(double x);

}  // namespace assay::stats
