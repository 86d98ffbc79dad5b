// Means over windows, and quantiles of windows drawn with replacement.
#include "cli/machine/quality_figures.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/intervals.h"
#include "stats/samples/summary.h"

namespace assay::cli {
namespace {

using Windows = std::vector<std::vector<engine::PositionError>>;

constexpr size_t kFewestWindows = 3;

QualityFigure mean_figure(const Windows& windows, const auto& value_of) {
  std::vector<double> means;
  for (const auto& window : windows) {
    double sum = 0;
    for (const engine::PositionError& position : window) sum += value_of(position);
    means.push_back(sum / static_cast<double>(window.size()));
  }
  QualityFigure figure{.value = *stats::mean(means)};
  const auto sd = stats::standard_deviation(means);
  if (means.size() < kFewestWindows || !sd || !(*sd > 0)) return figure;
  const auto n = static_cast<double>(means.size());
  if (const auto interval = stats::t_interval(figure.value, {*sd / std::sqrt(n), n - 1})) {
    figure.interval = {interval->low, interval->high};
  }
  return figure;
}

QualityFigure p99_figure(const Windows& windows, uint64_t seed) {
  std::vector<double> all;
  for (const auto& window : windows) {
    for (const engine::PositionError& position : window) all.push_back(position.kl);
  }
  QualityFigure figure{.value = *stats::quantile_unsorted(all, 0.99)};
  if (windows.size() < kFewestWindows) return figure;
  Random random(seed);
  std::vector<double> drawn(all.size());
  std::vector<double> replicates;
  const size_t length = windows.front().size();
  for (int i = 0; i < kResamples; ++i) {
    for (size_t to = 0; to < drawn.size(); to += length) {
      const size_t from = random.below(windows.size()) * length;
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), length,
                  drawn.begin() + static_cast<std::ptrdiff_t>(to));
    }
    replicates.push_back(*stats::quantile_unsorted(drawn, 0.99));
  }
  std::ranges::sort(replicates);
  figure.interval =
      EvidenceInterval{*stats::quantile(replicates, 0.025), *stats::quantile(replicates, 0.975)};
  return figure;
}

QualityFigure share_figure(const Windows& windows, int64_t positions) {
  QualityFigure figure =
      mean_figure(windows, [](const auto& position) { return position.same_choice ? 1.0 : 0.0; });
  const auto same = std::llround(figure.value * static_cast<double>(positions));
  const auto least = stats::wilson_interval(same, positions);
  if (windows.size() < kFewestWindows || !least) return figure;
  const EvidenceInterval by_windows =
      figure.interval.value_or(EvidenceInterval{least->low, least->high});
  figure.interval = EvidenceInterval{std::max(0.0, std::min(by_windows.low, least->low)),
                                     std::min(1.0, std::max(by_windows.high, least->high))};
  return figure;
}

}  // namespace

ModelQuality quality_figures(const Windows& windows, uint64_t seed) {
  ModelQuality figures;
  figures.windows = std::ssize(windows);
  figures.positions = std::ssize(windows) * std::ssize(windows.front());
  figures.reference_nll =
      mean_figure(windows, [](const auto& position) { return position.reference_nll; });
  figures.nll = mean_figure(windows, [](const auto& position) { return position.nll; });
  figures.nll_change = mean_figure(
      windows, [](const auto& position) { return position.nll - position.reference_nll; });
  figures.kl_mean = mean_figure(windows, [](const auto& position) { return position.kl; });
  figures.kl_p99 = p99_figure(windows, seed);
  figures.same_choice = share_figure(windows, figures.positions);
  return figures;
}

}  // namespace assay::cli
