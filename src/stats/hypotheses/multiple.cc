// Adjustment of p-values for a family of tests.
#include "stats/hypotheses/multiple.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::stats {
namespace {

std::vector<size_t> ascending(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i]; });
  return order;
}

// From the smallest on: p adjusted for how many are left, and none below the one before.
std::vector<double> step_down(std::span<const double> values, double (*adjust)(double, double)) {
  const std::vector<size_t> order = ascending(values);
  std::vector<double> adjusted(values.size());
  double floor = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    floor = std::max(floor, std::min(1.0, adjust(values[order[rank]], left)));
    adjusted[order[rank]] = floor;
  }
  return adjusted;
}

// From the largest on: p times the factor of its rank, and none above the one after.
template <typename Factor>
std::vector<double> step_up(std::span<const double> values, const Factor& factor) {
  const std::vector<size_t> order = ascending(values);
  std::vector<double> adjusted(values.size());
  double ceiling = 1;
  for (size_t rank = order.size(); rank-- > 0;) {
    ceiling = std::min(ceiling, values[order[rank]] * factor(static_cast<double>(rank)));
    adjusted[order[rank]] = ceiling;
  }
  return adjusted;
}

// 1 - (1 - p)^count.
double any_of(double p, double count) {
  return -std::expm1(count * std::log1p(-p));
}

}  // namespace

std::vector<double> holm(std::span<const double> p_values) {
  return step_down(p_values, [](double p, double left) { return p * left; });
}

std::vector<double> bonferroni(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  const auto count = static_cast<double>(adjusted.size());
  for (double& p : adjusted) p = std::min(1.0, p * count);
  return adjusted;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  const auto count = static_cast<double>(p_values.size());
  return step_up(p_values, [&](double rank) { return count / (rank + 1); });
}

std::vector<double> hochberg(std::span<const double> p_values) {
  const auto count = static_cast<double>(p_values.size());
  return step_up(p_values, [&](double rank) { return count - rank; });
}

std::vector<double> hommel(std::span<const double> p_values) {
  const std::vector<size_t> order = ascending(p_values);
  const size_t n = order.size();
  std::vector<double> p(n);
  for (size_t i = 0; i < n; ++i) p[i] = p_values[order[i]];
  // Wright (1992): for every size m of a subset, Simes' bound of its largest m - 1 values.
  std::vector<double> found = p;
  for (size_t m = n; m >= 2; --m) {
    const auto size = static_cast<double>(m);
    double bound = 1;
    for (size_t k = 1; k <= m; ++k) {
      bound = std::min(bound, size * p[n - m + k - 1] / static_cast<double>(k));
    }
    double tail = 1;  // of the m - 1 largest, the smallest one aside
    for (size_t k = 2; k <= m; ++k) {
      tail = std::min(tail, size * p[n - m + k - 1] / static_cast<double>(k));
    }
    for (size_t i = n - m + 1; i < n; ++i) found[i] = std::max(found[i], bound);
    for (size_t i = 0; i <= n - m; ++i) {
      found[i] = std::max(found[i], std::min(tail, size * p[i]));
    }
  }
  std::vector<double> adjusted(n);
  for (size_t i = 0; i < n; ++i) adjusted[order[i]] = std::min(1.0, found[i]);
  return adjusted;
}

std::vector<double> sidak(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  const auto count = static_cast<double>(adjusted.size());
  for (double& p : adjusted) p = any_of(p, count);
  return adjusted;
}

std::vector<double> holm_sidak(std::span<const double> p_values) {
  return step_down(p_values, any_of);
}

std::vector<double> benjamini_yekutieli(std::span<const double> p_values) {
  const auto count = static_cast<double>(p_values.size());
  double harmonic = 0;
  for (size_t k = 1; k <= p_values.size(); ++k) harmonic += 1 / static_cast<double>(k);
  return step_up(p_values, [&](double rank) { return harmonic * count / (rank + 1); });
}

}  // namespace assay::stats
