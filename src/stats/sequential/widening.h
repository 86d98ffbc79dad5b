// Effect of alike neighbours on the error of a mean.
#pragma once

#include <cstdint>

namespace assay::stats {

inline constexpr double kMostAlike =
    0.97;  // the largest autocorrelation that an estimate counts as

// Factors, against independent observations that know nothing but themselves, on the standard error
// sd / sqrt(n) of a mean and on its degrees of freedom.
struct Widening {
  double error = 1;         // times the standard error; at least 1
  double df = 1;            // times the degrees of freedom; at most 1 unless others are shared
  double log_variance = 0;  // of ln(error^2), where the autocorrelation is an estimate
};

// Inflation for n >= 2 values of a first-order series with autocorrelation r, 0 <= r < 1. The
// variance of their mean is g sd^2 / n.
struct FirstOrder {
  double inflation = 1;  // g = 1 + 2 sum_k (1 - k / n) r^k, k < n
  double df = 0;         // of the sample variance: n - 1 where r is 0
};

// For a Gaussian series the sample variance is a quadratic form, with mean (n - g) / (n - 1) times
// the true one and degrees of freedom tr(MS)^2 / tr(MSMS), S the correlations and M = I - 11'/n
// (Bayley and Hammersley 1946; Box 1954; Satterthwaite 1946). They are far more than n / g - 1: the
// spread of alike values is better known than their mean.
FirstOrder first_order(int64_t n, double r);

// error^2 = g (n - 1) / (n - g), which also makes up for the sample variance's bias, g no larger
// than n / 2. log_variance: the square of the way of ln(error^2) from r to r + r_error, which ends
// at kMostAlike, or of the mean way to both sides where that is longer.
Widening first_order_widening(int64_t n, double r, double r_error);

}  // namespace assay::stats
