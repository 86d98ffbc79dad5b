// One-way analysis of variance, and Levene's test, which is one of deviations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/hypotheses/tests.h"

namespace assay::stats {
namespace {

// Moments of a group that may have a single value, whose variance counts as 0.
std::optional<Moments> group_moments(std::span<const double> group) {
  if (group.size() == 1) return Moments{1, group[0], 0};
  return moments(group);
}

}  // namespace

std::optional<FTest> one_way_anova(std::span<const Moments> groups) {
  if (groups.size() < 2) return std::nullopt;
  double n = 0;
  double grand = 0;
  for (const Moments& group : groups) {
    if (group.n < 1) return std::nullopt;
    n += static_cast<double>(group.n);
    grand += static_cast<double>(group.n) * (group.mean - groups[0].mean);
  }
  grand /= n;  // less the first group's mean
  const auto count = static_cast<double>(groups.size());
  if (!(n > count)) return std::nullopt;
  double between = 0;
  double within = 0;
  for (const Moments& group : groups) {
    const auto size = static_cast<double>(group.n);
    const double distance = group.mean - groups[0].mean - grand;
    between += size * distance * distance;
    if (group.n > 1) within += (size - 1) * group.variance;
  }
  FTest test;
  test.df1 = count - 1;
  test.df2 = n - count;
  test.f = between / test.df1 / (within / test.df2);
  if (!(within > 0)) return std::nullopt;
  const auto area = f_upper(test.f, test.df1, test.df2);
  if (!area) return std::nullopt;
  test.p = area->p;
  test.log_p = area->log_p;
  return test;
}

std::optional<FTest> levene(std::span<const std::vector<double>> groups, Centre centre) {
  std::vector<Moments> deviations;
  double largest = 0;
  double count = 0;
  double within = 0;
  for (const std::vector<double>& group : groups) {
    const auto middle = centre == Centre::kMean ? mean(group) : median(sorted(group));
    if (!middle) return std::nullopt;
    std::vector<double> distances(group);
    for (double& x : distances) x = std::abs(x - *middle);
    const auto of_group = group_moments(distances);
    if (!of_group) return std::nullopt;
    deviations.push_back(*of_group);
    for (const double x : group) largest = std::max(largest, std::abs(x));
    count += static_cast<double>(group.size());
    within += static_cast<double>(group.size() - 1) * of_group->variance;
  }
  // Two values lie equally far from their middle: any difference is rounding.
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * largest;
  if (within <= count * rounding * rounding) return std::nullopt;
  return one_way_anova(deviations);
}

}  // namespace assay::stats
