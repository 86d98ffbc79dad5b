// The mean of a series of repetitions, with an error that knows about order.
#include "analysis/serial.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/series.h"
#include "stats/summary.h"
#include "stats/trend.h"

namespace assay {
namespace {

// Whether the series trends, and how far it goes from its first value to its last.
std::optional<double> drift_of(std::span<const double> series) {
  const auto trend = stats::mann_kendall(series);
  if (!trend || trend->p >= kDriftLevel) return std::nullopt;
  std::vector<double> order(series.size());
  std::iota(order.begin(), order.end(), 0.0);
  const auto slope = stats::theil_sen_slope(order, series);
  if (!slope) return std::nullopt;
  return *slope * (order.back() - order.front());
}

// Both see dependence that the other misses: Geyer's sum sees beyond the first lag, the lag-1 form
// with Kendall's (1954) correction of its bias sees it in thirty rows, where every r_k is too low.
double effective_size(std::span<const double> series) {
  const auto n = static_cast<double>(series.size());
  const auto r = stats::autocorrelation(series, 1);
  const auto whole = stats::effective_sample_size(series);
  if (n < 6 || !r || !whole) return n;
  const double lag1 = std::clamp((n * (*r)[1] + 1) / (n - 4), 0.0, 0.97);
  return std::clamp(std::min(n * (1 - lag1) / (1 + lag1), whole->size), 2.0, n);
}

}  // namespace

std::optional<SeriesMean> series_mean(std::span<const double> series) {
  const auto moments = stats::moments(series);
  if (!moments || !(moments->variance > 0)) return std::nullopt;
  SeriesMean result;
  result.n = moments->n;
  result.mean = moments->mean;
  result.sd = std::sqrt(moments->variance);
  result.n_effective = effective_size(series);
  result.drift = drift_of(series);
  const double drift = result.drift.value_or(0);
  result.error2 = moments->variance / result.n_effective + drift * drift / 4;
  result.df = result.n_effective - 1;
  return result;
}

}  // namespace assay
