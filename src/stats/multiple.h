// Adjustment of p-values for a family of tests.
#pragma once

#include <span>
#include <vector>

namespace assay::stats {

// Holm (1979): the i-th smallest of m times (m - i + 1), made monotone, at most 1; in the order of
// the argument. Controls the family-wise error without assumptions on dependence.
std::vector<double> holm(std::span<const double> p_values);

// min(1, m p).
std::vector<double> bonferroni(std::span<const double> p_values);

}  // namespace assay::stats
