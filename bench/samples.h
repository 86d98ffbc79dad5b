// Figures of a benchmark's repetitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace assay::bench {

// Figures where more is better (GB/s, GFLOP/s): the best is what the machine can do, because other
// load on it can only lower a figure; median and spread say how steady it was.
struct Samples {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  double best() const { return *std::ranges::max_element(values); }
  double median() const { return quantile(0.5); }
  // (p90 - p10) / median.
  double spread() const { return (quantile(0.9) - quantile(0.1)) / median(); }

  double quantile(double q) const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
  }
};

inline const char* verdict(double fraction, double bar) {
  return fraction >= bar ? "PASS" : "BELOW";
}

}  // namespace assay::bench
