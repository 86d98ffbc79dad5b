// Power of a comparison, and the smallest effect that it can detect.
#pragma once

#include <cstdint>
#include <optional>

#include "stats/hypotheses/tests.h"

namespace assay::stats {

// Power of the two-sided t test at level alpha when the true difference is `difference`:
// P(|T'| > t_crit), T' noncentral t with noncentrality difference / error. Exact for Student's t
// (pooled_standard_error), near for Welch's.
std::optional<double> t_test_power(double difference, const StandardError& error, double alpha);

// Smallest true difference (in the samples' unit) that the two-sided t test at level alpha finds
// with the given power, for the standard error at hand. alpha < power < 1.
std::optional<double> minimum_detectable_difference(const StandardError& error, double alpha = 0.05,
                                                    double power = 0.8);

// Smallest number of repetitions a side with which Student's test at level alpha finds a difference
// of d standard deviations with the given power. Absent for d = 0.
std::optional<int64_t> repetitions_needed(double d, double alpha = 0.05, double power = 0.8);

}  // namespace assay::stats
