// What a comparison could have found: power and the minimum detectable effect.
#pragma once

#include <optional>

#include "stats/tests.h"

namespace assay::stats {

// Power of the two-sided t test at level alpha when the true difference is `difference`:
// P(|T'| > t_crit), T' noncentral t with noncentrality difference / error.
std::optional<double> t_test_power(double difference, const StandardError& error, double alpha);

// Smallest true difference (in the samples' unit) that the two-sided t test at level alpha finds
// with the given power, for the standard error at hand. alpha < power < 1.
std::optional<double> minimum_detectable_difference(const StandardError& error, double alpha = 0.05,
                                                    double power = 0.8);

}  // namespace assay::stats
