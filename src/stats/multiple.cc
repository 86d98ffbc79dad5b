// Adjustment of p-values for a family of tests.
#include "stats/multiple.h"

#include <algorithm>
#include <numeric>

namespace assay::stats {

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double floor = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    floor = std::max(floor, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = floor;
  }
  return adjusted;
}

std::vector<double> bonferroni(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  for (double& p : adjusted) p = std::min(1.0, p * static_cast<double>(adjusted.size()));
  return adjusted;
}

}  // namespace assay::stats
