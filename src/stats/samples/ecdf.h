// The empirical distribution function of a sample.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace assay::stats {

// Share of the values that are at most x. `sorted` ascending; absent for n = 0.
std::optional<double> ecdf(std::span<const double> sorted, double x);

// Its steps: each different value with the share of values at most that one, ascending; the last
// share is 1.
struct EcdfStep {
  double value = 0;
  double share = 0;
};
std::vector<EcdfStep> ecdf_steps(std::span<const double> sorted);

}  // namespace assay::stats
