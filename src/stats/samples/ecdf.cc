// The empirical distribution function.
#include "stats/samples/ecdf.h"

#include <algorithm>

namespace assay::stats {

std::optional<double> ecdf(std::span<const double> sorted, double x) {
  if (sorted.empty()) return std::nullopt;
  const auto below = std::ranges::upper_bound(sorted, x) - sorted.begin();
  return static_cast<double>(below) / static_cast<double>(sorted.size());
}

std::vector<EcdfStep> ecdf_steps(std::span<const double> sorted) {
  std::vector<EcdfStep> steps;
  const auto n = static_cast<double>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i + 1 < sorted.size() && sorted[i + 1] == sorted[i]) continue;
    steps.push_back({sorted[i], static_cast<double>(i + 1) / n});
  }
  return steps;
}

}  // namespace assay::stats
