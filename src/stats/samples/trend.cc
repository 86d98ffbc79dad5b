// Drift along the order of a series.
#include "stats/samples/trend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

constexpr size_t kAllPairsLimit = 512;
constexpr size_t kLineLimit = 4096;

// Pairs i < j with y_i > y_j, by merge sort; sorts `values`.
double count_falls(std::span<double> values, std::span<double> scratch) {
  const size_t n = values.size();
  if (n < 2) return 0;
  const size_t half = n / 2;
  double falls = count_falls(values.first(half), scratch.first(half)) +
                 count_falls(values.subspan(half), scratch.subspan(half));
  size_t left = 0;
  size_t right = half;
  for (double& out : scratch.first(n)) {
    if (right == n || (left < half && values[left] <= values[right])) {
      out = values[left++];
    } else {
      falls += static_cast<double>(half - left);
      out = values[right++];
    }
  }
  std::ranges::copy(scratch.first(n), values.begin());
  return falls;
}

// Sum of t (t - 1) (2 t + 5) over groups of t equal values.
double tie_term(std::span<const double> ascending) {
  double sum = 0;
  for (auto group = ascending.begin(); group != ascending.end();) {
    const auto end =
        std::find_if(group + 1, ascending.end(), [&](double v) { return v != *group; });
    const auto t = static_cast<double>(end - group);
    sum += t * (t - 1) * (2 * t + 5);
    group = end;
  }
  return sum;
}

// Kendall's S and its variance, which is above 0.
struct KendallSum {
  double s = 0;
  double variance = 0;
};

std::optional<KendallSum> kendall_sum(std::span<const double> series) {
  if (series.size() < 4 ||
      !std::ranges::all_of(series, [](double x) { return std::isfinite(x); })) {
    return std::nullopt;
  }
  std::vector<double> values(series.begin(), series.end());
  std::vector<double> scratch(values.size());
  const double falls = count_falls(values, scratch);
  const auto n = static_cast<double>(values.size());
  double tied_pairs = 0;
  const double tied_variance = tie_term(values);
  for (auto group = values.begin(); group != values.end();) {
    const auto end = std::find_if(group + 1, values.end(), [&](double x) { return x != *group; });
    const auto t = static_cast<double>(end - group);
    tied_pairs += t * (t - 1) / 2;
    group = end;
  }
  const double variance = (n * (n - 1) * (2 * n + 5) - tied_variance) / 18;
  if (!(variance > 0)) return std::nullopt;
  return KendallSum{n * (n - 1) / 2 - tied_pairs - 2 * falls, variance};
}

TrendTest test_of(const KendallSum& sum) {
  TrendTest test;
  test.s = sum.s;
  const double corrected = std::max(0.0, std::abs(test.s) - 1);
  test.z = std::copysign(corrected / std::sqrt(sum.variance), test.s);
  const TailArea area = normal_two_sided(test.z);
  test.p = area.p;
  test.log_p = area.log_p;
  return test;
}

}  // namespace

std::optional<TrendTest> mann_kendall(std::span<const double> series) {
  const auto sum = kendall_sum(series);
  return sum ? std::optional(test_of(*sum)) : std::nullopt;
}

std::optional<TrendTest> mann_kendall(std::span<const std::vector<double>> parts) {
  KendallSum together;
  for (const std::vector<double>& part : parts) {
    const auto sum = kendall_sum(part);
    if (!sum) continue;
    together.s += sum->s;
    together.variance += sum->variance;
  }
  return together.variance > 0 ? std::optional(test_of(together)) : std::nullopt;
}

std::optional<double> theil_sen_slope(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  std::vector<double> slopes;
  const auto add = [&](size_t i, size_t j) {
    if (x[i] < x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  };
  const size_t n = x.size();
  if (n <= kAllPairsLimit) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) add(i, j);
    }
  } else {
    for (size_t i = 0; i + n / 2 < n; ++i) add(i, i + n / 2);
  }
  return quantile_in_place(slopes, 0.5);
}

std::optional<TrendLine> theil_sen(std::span<const double> x, std::span<const double> y,
                                   double confidence) {
  assert(x.size() == y.size());
  const auto z = normal_quantile(1 - (1 - confidence) / 2);
  const size_t n = x.size();
  if (!z || n < 2 || n > kLineLimit) return std::nullopt;
  std::vector<double> slopes;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      if (x[i] != x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
    }
  }
  if (slopes.empty()) return std::nullopt;
  std::ranges::sort(slopes);
  const auto count = static_cast<double>(n);
  const double variance =
      (count * (count - 1) * (2 * count + 5) - tie_term(sorted(x)) - tie_term(sorted(y))) / 18;
  const auto slope = median(slopes);
  const auto middle_x = median(sorted(x));
  const auto middle_y = median(sorted(y));
  if (!slope || !middle_x || !middle_y) return std::nullopt;  // a difference has overflowed
  TrendLine line;
  line.slope = *slope;
  line.intercept = *middle_y - *slope * *middle_x;
  if (!std::isfinite(line.intercept)) return std::nullopt;
  const auto pairs = static_cast<double>(slopes.size());
  const double reach = *z * std::sqrt(std::max(0.0, variance));
  const double low = std::nearbyint((pairs - reach) / 2) - 1;
  const double high = std::nearbyint((pairs + reach) / 2);
  if (low >= 0 && high < pairs) {
    line.interval = Interval{slopes[static_cast<size_t>(low)], slopes[static_cast<size_t>(high)]};
  }
  return line;
}

}  // namespace assay::stats
