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

// Benjamini and Hochberg (1995): the i-th smallest of m times m / i, made monotone from above, at
// most 1. Controls the share of false discoveries for independent or positively dependent tests.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

// More, for tables that others printed. Hochberg (1988), step-up with Holm's factors; Hommel
// (1988), by the closed test of Simes' inequality, O(n^2); Sidak (1967), 1 - (1 - p)^m, and stepped
// down as Holm does; Benjamini and Yekutieli (2001), for any dependence: Benjamini-Hochberg times 1
// + 1/2 + ... + 1/m.
std::vector<double> hochberg(std::span<const double> p_values);
std::vector<double> hommel(std::span<const double> p_values);
std::vector<double> sidak(std::span<const double> p_values);
std::vector<double> holm_sidak(std::span<const double> p_values);
std::vector<double> benjamini_yekutieli(std::span<const double> p_values);

}  // namespace assay::stats
