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

constexpr double kDriftLevel = 0.05;
constexpr double kCautiousDriftLevel = 0.4;
constexpr double kLongSeries =
    100;  // rows from which on r_k beyond the first can be told from noise

// How far the series goes from its first value to its last.
double drift_of(std::span<const double> series) {
  std::vector<double> order(series.size());
  std::iota(order.begin(), order.end(), 0.0);
  return stats::theil_sen_slope(order, series).value_or(0) * (order.back() - order.front());
}

struct Sizes {
  double effective = 0;
  double cautious = 0;
};

// Geyer's sum sees dependence beyond the first lag; the lag-1 form with Kendall's (1954) correction
// of its bias sees it in thirty rows, where every r_k is too low.
Sizes effective_sizes(std::span<const double> series) {
  const auto n = static_cast<double>(series.size());
  const auto r = stats::autocorrelation(series, 1);
  const auto whole = stats::effective_sample_size(series);
  if (n < 6 || !r || !whole) return {n, n};
  const double lag1 = std::clamp((n * (*r)[1] + 1) / (n - 4), 0.0, 0.97);
  const double by_lag1 = n * (1 - lag1) / (1 + lag1);
  const bool dependent = (*r)[1] + 1 / n > 1 / std::sqrt(n);
  Sizes sizes{dependent ? by_lag1 : n, std::min(by_lag1, whole->size)};
  if (n >= kLongSeries) sizes.effective = sizes.cautious;
  return {std::clamp(sizes.effective, 2.0, n), std::clamp(sizes.cautious, 2.0, n)};
}

}  // namespace

std::optional<SeriesMean> series_mean(std::span<const double> series) {
  const auto moments = stats::moments(series);
  if (!moments || !(moments->variance > 0)) return std::nullopt;
  SeriesMean result;
  result.n = moments->n;
  result.mean = moments->mean;
  result.sd = std::sqrt(moments->variance);
  const Sizes sizes = effective_sizes(series);
  result.n_effective = sizes.effective;
  result.error = {moments->variance / sizes.effective, sizes.effective - 1};
  result.cautious = {moments->variance / sizes.cautious, sizes.cautious - 1};
  const auto trend = stats::mann_kendall(series);
  if (!trend || trend->p >= kCautiousDriftLevel) return result;
  const double drift = drift_of(series);
  result.cautious.square += drift * drift / 4;
  if (trend->p >= kDriftLevel) return result;
  result.drift = drift;
  result.error.square += drift * drift / 4;
  return result;
}

}  // namespace assay
