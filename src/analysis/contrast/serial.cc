// The mean of a series of repetitions, with an error that knows about order.
#include "analysis/contrast/serial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/contrast/dependence.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/multiple.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"
#include "stats/samples/trend.h"

namespace assay {
namespace {

constexpr double kFamilyLevel = 0.025;
constexpr double kDriftLevel = 0.05;

// Difference of the series' trend from its first value to its last.
double drift_of(std::span<const double> series) {
  std::vector<double> order(series.size());
  std::iota(order.begin(), order.end(), 0.0);
  return stats::theil_sen_slope(order, series).value_or(0) * (order.back() - order.front());
}

// True for each series whose drift shows.
std::vector<bool> drifts(std::span<const std::vector<double>> family) {
  std::vector<size_t> members;
  std::vector<double> p;
  double fisher = 0;  // chi-square with two degrees of freedom a series, if none drifts
  std::vector<bool> result(family.size());
  for (size_t i = 0; i < family.size(); ++i) {
    const auto trend = stats::mann_kendall(family[i]);
    if (!trend) continue;
    members.push_back(i);
    p.push_back(trend->p);
    fisher -= 2 * trend->log_p;
  }
  if (p.empty()) return result;
  const auto together = stats::chi_square_upper(fisher, 2 * static_cast<double>(p.size()));
  const bool common = together && together->p < kFamilyLevel;
  const std::vector<double> holm = stats::holm(p);
  for (size_t m = 0; m < members.size(); ++m) {
    result[members[m]] = (common ? p[m] : holm[m]) < kDriftLevel;
  }
  return result;
}

}  // namespace

std::vector<std::optional<SeriesMean>> series_means(std::span<const std::vector<double>> family) {
  const std::vector<Dependence> dependence = dependences(family);
  const std::vector<bool> drift = drifts(family);
  std::vector<std::optional<SeriesMean>> all(family.size());
  for (size_t i = 0; i < family.size(); ++i) {
    const auto moments = stats::moments(family[i]);
    if (!moments || !(moments->variance > 0)) continue;
    SeriesMean& result = all[i].emplace();
    result.n = moments->n;
    result.mean = moments->mean;
    result.sd = std::sqrt(moments->variance);
    result.n_effective = static_cast<double>(moments->n) / dependence[i].inflation;
    const stats::StandardError independent = stats::error_of_mean(*moments);
    result.error = independent.widened(dependence[i].widening);
    if (!drift[i]) continue;
    const double way = drift_of(family[i]);
    result.drift = way;
    result.error.value = std::hypot(result.error.value, way / 2);
  }
  return all;
}

}  // namespace assay
