// The geometric mean over strata of the ratios of two arms' means, with its standard error: the
// test behind a combined contrast.
#pragma once

#include <optional>
#include <span>

#include "stats/hypotheses/tests.h"

namespace assay::stats {

struct StratumMoments {
  Moments numerator;
  Moments denominator;
  Widening widening = {};  // of the stratum's error, where its observations depend on one another
  bool apart = false;      // every observation of one lies above every one of the other
  // Covariance (with n - 1, as the variances) of samples whose i-th observations were taken
  // together: their common part cancels in the ratio. Absent: samples that know nothing of each
  // other.
  std::optional<double> covariance = std::nullopt;
};

// sum((a_i - mean_a)(b_i - mean_b)) / (n - 1). Absent for n < 2 or samples of unequal size.
std::optional<double> covariance(std::span<const double> a, std::span<const double> b);

// Standard error of numerator - scale * denominator, widened. For pairs sqrt((v_a + scale^2 v_b - 2
// scale cov) / n) with n - 1 degrees of freedom, the error of a ratio estimator (Cochran 1977,
// section 6.4); else Welch's. Absent where that is 0 or can't be had.
std::optional<StandardError> difference_error(const StratumMoments& pair, double scale = 1);

// The test of tests.h's tost_ratio(), with difference_error().
std::optional<TestResult> tost_ratio(const StratumMoments& pair, double low, double high);

// A positive mean and its standard error.
struct MeanError {
  double mean = 0;
  double error = 0;
};

// Divisor that turns the error of x into that of ln(x) in a test of ln(x / other). As a rule it is
// the logarithmic mean of both, (a - b) / ln(a / b): t of ln(a / b) is then the t of a - b. The
// delta method would take x itself; but ln of a mean that one huge value made grows without bound
// while its error, relative to itself, can't exceed 1, and of two skewed samples the one that
// caught few slow calls has the lower mean and the smaller error.
// The t of a - b, though, can't exceed the larger mean's own mean / error, however small the other
// is: ten calls of 1.1 to 2.2 s that come in runs could not be told from ten of 0.156 s. So where
// the samples are `apart` and both errors are below a third of their means, it is x itself.
double log_scale(const MeanError& x, const MeanError& other, bool apart);
// Those of both means of a stratum, by their widened errors.
struct LogScales {
  double numerator = 1;
  double denominator = 1;
};
LogScales log_scales(const StratumMoments& stratum);

// ln of the geometric mean: (1/S) sum ln(mean_s / mean'_s); its variance, degrees of freedom by
// Satterthwaite (1946) over its terms, is (1/S^2) sum of widening^2 var / (n m^2) over all samples,
// m their log_scale(); of pairs the variance is that of numerator / m - denominator / m'. The
// strata's autocorrelations are learnt together, so their errors add up in full: (sum of share
// sqrt(log_variance))^2. One stratum's t is Welch's unless its samples are apart. t = estimate /
// error tests a ratio of 1; tost() with ln margins tests equivalence. Absent for no strata, a mean
// that isn't positive, n < 2, or no variance at all.
struct LogRatio {
  double estimate = 0;
  StandardError error;
};
std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata);

// Two-sided t test that the estimate is 0.
std::optional<TestResult> log_ratio_test(const LogRatio& ratio);

// An estimate that is near normal, with its error.
struct Known {
  double value = 0;
  StandardError error;
};
// Fieller's interval (1954) of a / b for estimates that know nothing of each other, with so much
// beyond either end; degrees of freedom at each end are Satterthwaite's. Absent where b isn't told
// from 0 that surely, which leaves an end open.
std::optional<Interval> quotient_interval(const Known& a, const Known& b, double tail);

}  // namespace assay::stats
