// The geometric mean over strata of the ratios of two arms' means, with its standard error: the
// test behind a combined contrast.
#pragma once

#include <optional>
#include <span>

#include "stats/tests.h"

namespace assay::stats {

struct StratumMoments {
  Moments numerator;
  Moments denominator;
  Widening widening = {};  // of the stratum's error, where its observations depend on one another
};

// (a - b) / ln(a / b), a where they are equal: errors relative to it make t of ln(a / b) the t of a
// - b. Both positive.
double logarithmic_mean(double a, double b);

// ln of the geometric mean: (1/S) sum ln(mean_s / mean'_s); its variance, degrees of freedom by
// Satterthwaite (1946) over its terms, is (1/S^2) sum of widening^2 var / (n m^2) over all samples,
// m the logarithmic mean of the stratum's two means. The strata's autocorrelations are learnt
// together, so their errors add up in full: (sum of share sqrt(log_variance))^2. By the delta
// method m would be the sample's own; but ln of a mean that one huge value made grows without bound
// while its error, relative to itself, can't exceed 1. With this m one stratum's t is Welch's. t =
// estimate / error tests a ratio of 1; tost() with ln margins tests equivalence. Absent for no
// strata, a mean that isn't positive, n < 2, or no variance at all.
struct LogRatio {
  double estimate = 0;
  StandardError error;
};
std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata);

// Two-sided t test that the estimate is 0.
std::optional<TestResult> log_ratio_test(const LogRatio& ratio);

}  // namespace assay::stats
