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
  double widening = 1;  // of the stratum's error, where its observations depend on one another
};

// ln of the geometric mean: (1/S) sum ln(mean_s / mean'_s); its variance by the delta method,
// (1/S^2) sum of widening^2 var / (n m^2) over all samples, degrees of freedom by Satterthwaite
// (1946) over the same terms. m is the sample's mean or, if smaller, that of the stratum's two
// means: relative to a mean that one huge value made, an error can't exceed 1, while the logarithm
// that it is held against grows without bound. t = estimate / error tests a ratio of 1; tost() with
// ln margins tests equivalence. Absent for no strata, a mean that isn't positive, n < 2, or no
// variance at all.
struct LogRatio {
  double estimate = 0;
  StandardError error;
};
std::optional<LogRatio> combined_log_ratio(std::span<const StratumMoments> strata);

// Two-sided t test that the estimate is 0.
std::optional<TestResult> log_ratio_test(const LogRatio& ratio);

}  // namespace assay::stats
