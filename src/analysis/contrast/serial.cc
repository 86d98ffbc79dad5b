// The mean of a series of repetitions, with an error that knows about order.
#include "analysis/contrast/serial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/contrast/dependence.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/multiple.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/series.h"
#include "stats/samples/summary.h"
#include "stats/samples/trend.h"

namespace assay {
namespace {

constexpr double kFamilyLevel = 0.025;
constexpr double kDriftLevel = 0.05;
constexpr double kCautiousDriftLevel = 0.4;

// Difference of the series' trend from its first value to its last.
double drift_of(std::span<const double> series) {
  std::vector<double> order(series.size());
  std::iota(order.begin(), order.end(), 0.0);
  return stats::theil_sen_slope(order, series).value_or(0) * (order.back() - order.front());
}

// Autocorrelation that the series itself shows, however little: Geyer's sum sees dependence beyond
// the first lag, the lag-1 form sees it in thirty rows, where every r_k is too low.
double cautious_r(std::span<const double> series) {
  const auto lag = stats::lag1_autocorrelation(series);
  if (!lag) return 0;
  const double r = counted_r(series, lag->r);
  if (series.size() >= kLongSeries) return r;  // counted_r() has asked Geyer
  const auto whole = stats::effective_sample_size(series);
  return whole ? std::max(r, r_of_size(series.size(), whole->size)) : r;
}

// Drift of a series: true if it shows, true if it might be there.
struct Drift {
  bool shows = false;
  bool possible = false;
};

std::vector<Drift> drifts(std::span<const std::vector<double>> family) {
  std::vector<size_t> members;
  std::vector<double> p;
  double fisher = 0;  // chi-square with two degrees of freedom a series, if none drifts
  std::vector<Drift> result(family.size());
  for (size_t i = 0; i < family.size(); ++i) {
    const auto trend = stats::mann_kendall(family[i]);
    if (!trend) continue;
    members.push_back(i);
    p.push_back(trend->p);
    fisher -= 2 * trend->log_p;
    result[i].possible = trend->p < kCautiousDriftLevel;
  }
  if (p.empty()) return result;
  const auto together = stats::chi_square_upper(fisher, 2 * static_cast<double>(p.size()));
  const bool common = together && together->p < kFamilyLevel;
  const std::vector<double> holm = stats::holm(p);
  for (size_t m = 0; m < members.size(); ++m) {
    result[members[m]].shows = (common ? p[m] : holm[m]) < kDriftLevel;
  }
  return result;
}

}  // namespace

std::vector<std::optional<SeriesMean>> series_means(std::span<const std::vector<double>> family) {
  const std::vector<Dependence> dependence = dependences(family);
  const std::vector<Drift> drift = drifts(family);
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
    const double r = std::max(dependence[i].r, cautious_r(family[i]));
    result.cautious =
        independent.widened(stats::first_order_widening(moments->n, r, dependence[i].r_error));
    if (!drift[i].possible) continue;
    const double way = drift_of(family[i]);
    result.cautious.value = std::hypot(result.cautious.value, way / 2);
    if (!drift[i].shows) continue;
    result.drift = way;
    result.error.value = std::hypot(result.error.value, way / 2);
  }
  return all;
}

}  // namespace assay
