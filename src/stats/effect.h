// Standardised effect sizes of two samples, from their mean, sd and n. (Vargha-Delaney's A comes
// with the Mann-Whitney test.)
#pragma once

#include <optional>

#include "stats/summary.h"

namespace assay::stats {

// Cohen's d (1988): (mean_a - mean_b) / pooled sd,
// pooled^2 = ((n_a-1) var_a + (n_b-1) var_b) / (n_a + n_b - 2). Absent if n < 2 or the sd is 0.
std::optional<double> cohen_d(const Moments& a, const Moments& b);

// Hedges' g (1981): d times the exact correction J(m) = Gamma(m/2) / (sqrt(m/2) Gamma((m-1)/2)),
// m = n_a + n_b - 2. Absent where d is.
std::optional<double> hedges_g(const Moments& a, const Moments& b);

}  // namespace assay::stats
