// Description of one sample.
#include "stats/samples/summary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/samples/select.h"

namespace assay::stats {
namespace {

std::optional<double> finite(double x) {
  return std::isfinite(x) ? std::optional(x) : std::nullopt;
}

}  // namespace

std::optional<double> mean(std::span<const double> sample) {
  if (sample.empty()) return std::nullopt;
  const auto n = static_cast<double>(sample.size());
  return finite(std::accumulate(sample.begin(), sample.end(), 0.0) / n);
}

std::optional<double> variance(std::span<const double> sample) {
  if (sample.size() < 2) return std::nullopt;
  // The mean of a repeated value is rounded: its deviations would pass for variance.
  if (std::ranges::all_of(sample, [&](double x) { return x == sample[0]; })) return 0.0;
  const auto center = mean(sample);
  if (!center) return std::nullopt;
  double squares = 0;
  double rest = 0;  // sum of deviations: 0 but for rounding, taken out of the squares
  for (const double x : sample) {
    squares += (x - *center) * (x - *center);
    rest += x - *center;
  }
  const auto n = static_cast<double>(sample.size());
  const double result = std::max(0.0, squares - rest * rest / n) / (n - 1);
  if (result < std::numeric_limits<double>::min()) return std::nullopt;  // it has lost its digits
  return finite(result);
}

std::optional<double> standard_deviation(std::span<const double> sample) {
  const auto square = variance(sample);
  return square ? std::optional(std::sqrt(*square)) : std::nullopt;
}

std::optional<Moments> moments(std::span<const double> sample) {
  const auto center = mean(sample);
  const auto square = variance(sample);
  if (!center || !square) return std::nullopt;
  return Moments{static_cast<int64_t>(sample.size()), *center, *square};
}

std::vector<double> sorted(std::span<const double> sample) {
  std::vector<double> copy(sample.begin(), sample.end());
  std::ranges::sort(copy);
  return copy;
}

std::optional<double> quantile(std::span<const double> sorted, double p) {
  assert(p >= 0 && p <= 1);
  if (sorted.empty()) return std::nullopt;
  const double h = static_cast<double>(sorted.size() - 1) * p;
  const auto low = static_cast<size_t>(h);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return finite(std::lerp(sorted[low], sorted[high], h - static_cast<double>(low)));
}

std::optional<double> quantile_in_place(std::span<double> sample, double p) {
  assert(p >= 0 && p <= 1);
  if (sample.empty()) return std::nullopt;
  const double h = static_cast<double>(sample.size() - 1) * p;
  const auto low = static_cast<size_t>(h);
  const auto at = sample.begin() + static_cast<std::ptrdiff_t>(low);
  std::ranges::nth_element(sample, at);
  const double next = at + 1 == sample.end() ? *at : *std::min_element(at + 1, sample.end());
  return finite(std::lerp(*at, next, h - static_cast<double>(low)));
}

std::optional<double> quantile_unsorted(std::span<const double> sample, double p) {
  assert(p >= 0 && p <= 1);
  constexpr size_t kGuide = 128;
  const size_t n = sample.size();
  if (n < 8 * kGuide) {
    std::vector<double> copy(sample.begin(), sample.end());
    return quantile_in_place(copy, p);
  }
  const double h = static_cast<double>(n - 1) * p;
  const auto place = static_cast<size_t>(h);
  // Only values between two bounds are sorted; the bounds are order statistics of a few values,
  // three of their standard errors around the quantile.
  double guide[kGuide];
  for (size_t i = 0; i < kGuide; ++i) guide[i] = sample[i * (n / kGuide)];
  const auto guided = [&](double at) {
    constexpr double kEnd = std::numeric_limits<double>::infinity();
    if (at < 0) return -kEnd;
    if (at >= kGuide) return kEnd;
    std::ranges::nth_element(guide, guide + static_cast<size_t>(at));
    return guide[static_cast<size_t>(at)];
  };
  const double reach = 3 * std::sqrt(kGuide * p * (1 - p)) + 2;
  const double low = guided(std::floor(kGuide * p - reach));
  const double high = guided(std::ceil(kGuide * p + reach));
  std::vector<double> kept;
  size_t below = 0;
  size_t count = 0;
  constexpr size_t kPart = 1024;
  for (size_t begin = 0; begin < n; begin += kPart) {
    const auto part = sample.subspan(begin, std::min(kPart, n - begin));
    if (kept.size() < count + kPart + kKeepSlack) kept.resize(2 * (count + kPart + kKeepSlack));
    const KeptCounts counts = keep_between(part, low, high, kept.data() + count);
    below += counts.below;
    count += counts.kept;
  }
  kept.resize(count);
  if (place < below || place + 1 >= below + count) {  // they missed it
    kept.assign(sample.begin(), sample.end());
    return quantile_in_place(kept, p);
  }
  const auto at = kept.begin() + static_cast<std::ptrdiff_t>(place - below);
  std::ranges::nth_element(kept, at);
  return finite(
      std::lerp(*at, *std::min_element(at + 1, kept.end()), h - static_cast<double>(place)));
}

std::optional<double> percentile(std::span<const double> sorted, double p) {
  const double beyond = static_cast<double>(sorted.size()) * std::min(p, 1 - p);
  constexpr double kRounding = 1e-9;  // 1 - 0.9 is a little less than 0.1
  if (beyond < 1 - kRounding) return std::nullopt;
  return quantile(sorted, p);
}

std::optional<double> median(std::span<const double> sorted) {
  return quantile(sorted, 0.5);
}

std::optional<double> trimmed_mean(std::span<const double> sorted, double share) {
  assert(share >= 0 && share < 0.5);
  const auto cut = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return mean(sorted.subspan(cut, sorted.size() - 2 * cut));
}

TrimmedSeries trimmed_series(std::span<const double> sample, double share) {
  TrimmedSeries series{{sample.begin(), sample.end()}};
  const size_t n = sample.size();
  const auto cut = static_cast<size_t>(share * static_cast<double>(n));
  if (cut == 0 || n - 2 * cut < 2) return series;
  const std::vector<double> ascending = sorted(sample);
  for (double& value : series.values) {
    value = std::clamp(value, ascending[cut], ascending[n - 1 - cut]);
  }
  const auto all = static_cast<double>(n);
  const auto kept = static_cast<double>(n - 2 * cut);
  const double stretch = std::sqrt(all * (all - 1) / (kept * (kept - 1)));
  const double drawn_in = *mean(series.values);
  const double trimmed = *trimmed_mean(ascending, share);
  for (double& value : series.values) value = trimmed + stretch * (value - drawn_in);
  series.freedom = (kept - 1) / (all - 1);
  return series;
}

std::optional<double> median_absolute_deviation(std::span<const double> sorted) {
  const auto center = median(sorted);
  if (!center) return std::nullopt;
  std::vector<double> deviations(sorted.begin(), sorted.end());
  for (double& x : deviations) x = std::abs(x - *center);
  return quantile_in_place(deviations, 0.5);
}

std::optional<Fences> tukey_fences(std::span<const double> sorted, double k) {
  if (sorted.size() < 4) return std::nullopt;
  const auto low = quantile(sorted, 0.25);
  const auto high = quantile(sorted, 0.75);
  if (!low || !high) return std::nullopt;
  const double range = *high - *low;
  return Fences{*low - k * range, *high + k * range};
}

double p99_or_max(std::span<const double> sorted) {
  return percentile(sorted, 0.99).value_or(sorted.back());
}

}  // namespace assay::stats
