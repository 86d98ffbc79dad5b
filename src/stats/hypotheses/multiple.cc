// Adjustment of p-values for a family of tests.
#include "stats/hypotheses/multiple.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::stats {
namespace {

// The scales of p-values: one set of rules serves p and ln p. times() multiplies a p-value by a
// factor; kCertain is a p of 1.
struct Plain {
  static double times(double p, double factor) { return p * factor; }
  static constexpr double kLeast = 0;
  static constexpr double kCertain = 1;
};
struct Logarithmic {
  static double times(double log_p, double factor) { return log_p + std::log(factor); }
  static constexpr double kLeast = -HUGE_VAL;
  static constexpr double kCertain = 0;
};

std::vector<size_t> ascending(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i]; });
  return order;
}

template <class Scale>
std::vector<double> step_down(std::span<const double> values) {
  const std::vector<size_t> order = ascending(values);
  std::vector<double> adjusted(values.size());
  double floor = Scale::kLeast;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    floor = std::max(floor, std::min(Scale::kCertain, Scale::times(values[order[rank]], left)));
    adjusted[order[rank]] = floor;
  }
  return adjusted;
}

template <class Scale>
std::vector<double> all_times(std::span<const double> values) {
  std::vector<double> adjusted(values.begin(), values.end());
  const auto count = static_cast<double>(adjusted.size());
  for (double& p : adjusted) p = std::min(Scale::kCertain, Scale::times(p, count));
  return adjusted;
}

template <class Scale>
std::vector<double> step_up(std::span<const double> values) {
  const std::vector<size_t> order = ascending(values);
  std::vector<double> adjusted(values.size());
  const auto count = static_cast<double>(order.size());
  double ceiling = Scale::kCertain;
  for (size_t rank = order.size(); rank-- > 0;) {
    const double factor = count / static_cast<double>(rank + 1);
    ceiling = std::min(ceiling, Scale::times(values[order[rank]], factor));
    adjusted[order[rank]] = ceiling;
  }
  return adjusted;
}

}  // namespace

std::vector<double> holm(std::span<const double> p_values) {
  return step_down<Plain>(p_values);
}
std::vector<double> bonferroni(std::span<const double> p_values) {
  return all_times<Plain>(p_values);
}
std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  return step_up<Plain>(p_values);
}
std::vector<double> hochberg(std::span<const double> p_values) {
  const std::vector<size_t> order = ascending(p_values);
  std::vector<double> adjusted(p_values.size());
  double ceiling = 1;
  for (size_t rank = order.size(); rank-- > 0;) {
    ceiling = std::min(ceiling, p_values[order[rank]] * static_cast<double>(order.size() - rank));
    adjusted[order[rank]] = ceiling;
  }
  return adjusted;
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
  for (double& p : adjusted) p = -std::expm1(count * std::log1p(-p));
  return adjusted;
}

std::vector<double> holm_sidak(std::span<const double> p_values) {
  const std::vector<size_t> order = ascending(p_values);
  std::vector<double> adjusted(p_values.size());
  double floor = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    floor = std::max(floor, -std::expm1(left * std::log1p(-p_values[order[rank]])));
    adjusted[order[rank]] = floor;
  }
  return adjusted;
}

std::vector<double> benjamini_yekutieli(std::span<const double> p_values) {
  double harmonic = 0;
  for (size_t k = 1; k <= p_values.size(); ++k) harmonic += 1 / static_cast<double>(k);
  const std::vector<size_t> order = ascending(p_values);
  std::vector<double> adjusted(p_values.size());
  double ceiling = 1;
  for (size_t rank = order.size(); rank-- > 0;) {
    const double factor =
        harmonic * static_cast<double>(order.size()) / static_cast<double>(rank + 1);
    ceiling = std::min(ceiling, p_values[order[rank]] * factor);
    adjusted[order[rank]] = ceiling;
  }
  return adjusted;
}

std::vector<double> holm_log(std::span<const double> log_p_values) {
  return step_down<Logarithmic>(log_p_values);
}
std::vector<double> bonferroni_log(std::span<const double> log_p_values) {
  return all_times<Logarithmic>(log_p_values);
}
std::vector<double> benjamini_hochberg_log(std::span<const double> log_p_values) {
  return step_up<Logarithmic>(log_p_values);
}

}  // namespace assay::stats
