// Dependence between neighbours and changes of level.
#include "stats/samples/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stats/distributions/distributions.h"
#include "stats/samples/ranks.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// A series less its mean, scaled to a sum of squares that neither overflows nor underflows.
class Deviations {
 public:
  static std::optional<Deviations> of(std::span<const double> series) {
    const auto center = mean(series);
    if (series.size() < 2 || !center) return std::nullopt;
    if (std::ranges::all_of(series, [&](double x) { return x == series[0]; })) return std::nullopt;
    Deviations result;
    double farthest = 0;
    for (const double x : series) farthest = std::max(farthest, std::abs(x - *center));
    if (!(farthest > 0) || !std::isfinite(farthest)) return std::nullopt;
    for (const double x : series) result.values_.push_back((x - *center) / farthest);
    result.square_ = result.product(0);
    return result;
  }

  double at_lag(size_t lag) const { return product(lag) / square_; }

 private:
  double product(size_t lag) const {
    double sum = 0;
    for (size_t t = 0; t + lag < values_.size(); ++t) sum += values_[t] * values_[t + lag];
    return sum;
  }

  std::vector<double> values_;
  double square_ = 0;
};

}  // namespace

std::optional<std::vector<double>> autocorrelation(std::span<const double> series, size_t max_lag) {
  const auto deviations = Deviations::of(series);
  if (!deviations || max_lag >= series.size()) return std::nullopt;
  std::vector<double> r = {1};
  for (size_t lag = 1; lag <= max_lag; ++lag) r.push_back(deviations->at_lag(lag));
  return r;
}

std::optional<Lag1> lag1_autocorrelation(std::span<const double> series) {
  if (series.size() < 6) return std::nullopt;
  const auto r = autocorrelation(series, 1);
  if (!r) return std::nullopt;
  const auto n = static_cast<double>(series.size());
  const double variance = (n * n * n * n - 4 * n * n * n + 3 * n * n + 4 * n - 4) /
                          ((n + 1) * n * n * (n - 1) * (n - 1));
  return Lag1{(n * (*r)[1] + 1) / (n - 4), std::sqrt(variance) * n / (n - 4)};
}

std::optional<PortmanteauTest> ljung_box(std::span<const double> series, size_t lags) {
  const auto r = autocorrelation(series, lags);
  if (!r || lags < 1) return std::nullopt;
  const auto n = static_cast<double>(series.size());
  PortmanteauTest test;
  for (size_t k = 1; k <= lags; ++k) {
    test.q += (*r)[k] * (*r)[k] / (n - static_cast<double>(k));
  }
  test.q *= n * (n + 2);
  const auto area = chi_square_upper(test.q, static_cast<double>(lags));
  if (!area) return std::nullopt;
  test.p = area->p;
  test.log_p = area->log_p;
  return test;
}

std::optional<EffectiveSize> effective_sample_size(std::span<const double> series) {
  if (series.size() < 4) return std::nullopt;
  const auto deviations = Deviations::of(series);
  if (!deviations) return std::nullopt;
  double tau = -1;  // r_0 counts once, not twice
  double last = std::numeric_limits<double>::infinity();
  for (size_t lag = 0; lag + 1 < series.size(); lag += 2) {
    const double pair = deviations->at_lag(lag) + deviations->at_lag(lag + 1);
    if (!(pair > 0)) break;
    last = std::min(last, pair);
    tau += 2 * last;
  }
  tau = std::max(tau, 1.0);
  return EffectiveSize{static_cast<double>(series.size()) / tau, tau};
}

std::optional<ChangePoint> pettitt(std::span<const double> series) {
  if (series.size() < 4) return std::nullopt;
  const std::vector<double> ranks = mid_ranks(series);
  const auto n = static_cast<double>(series.size());
  ChangePoint best;
  double sum = 0;
  for (size_t t = 1; t < series.size(); ++t) {
    sum += ranks[t - 1];
    const double k = std::abs(2 * sum - static_cast<double>(t) * (n + 1));
    if (k > best.k) best = {t, k, 1, 0};
  }
  if (best.k == 0) return std::nullopt;  // every value the same, or a series that mirrors itself
  best.log_p = std::min(0.0, std::numbers::ln2 - 6 * best.k * best.k / (n * n * n + n * n));
  best.p = std::exp(best.log_p);
  return best;
}

std::vector<ChangePoint> change_points(std::span<const double> series, double alpha, size_t least) {
  std::vector<ChangePoint> found;
  std::vector<std::pair<size_t, size_t>> parts = {{0, series.size()}};
  while (!parts.empty()) {
    const auto [begin, end] = parts.back();
    parts.pop_back();
    auto change = pettitt(series.subspan(begin, end - begin));
    if (!change || change->p > alpha) continue;
    change->index += begin;
    if (change->index - begin < least || end - change->index < least) continue;
    found.push_back(*change);
    parts.emplace_back(begin, change->index);
    parts.emplace_back(change->index, end);
  }
  std::ranges::sort(found, {}, &ChangePoint::index);
  return found;
}

}  // namespace assay::stats
