// Resamples of a sorted sample are counts of its places, so that a quantile of one needs no sort.
#include "stats/estimates/quantile_ratio.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "stats/distributions/distributions.h"
#include "stats/resamples/resample_order.h"
#include "stats/resamples/resamples.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// P(B = k), B binomial (n, p), 0 < p < 1.
double binomial_share(int64_t k, int64_t n, double p) {
  const auto hits = static_cast<double>(k);
  const auto all = static_cast<double>(n);
  const double ways = log_gamma(all + 1) - log_gamma(hits + 1) - log_gamma(all - hits + 1);
  return std::exp(ways + hits * std::log(p) + (all - hits) * std::log1p(-p));
}

}  // namespace

std::shared_ptr<const QuantileBootstrap::Places> QuantileBootstrap::places(size_t n, double p) {
  const std::lock_guard lock(mutex_);
  auto& kept = places_[{n, p}];
  if (kept) return kept;
  const double place = p * static_cast<double>(n - 1);
  const auto below = static_cast<size_t>(place);
  const size_t slabs = slabs_for(options_.resamples);
  auto found = std::make_shared<Places>();
  found->share = place - static_cast<double>(below);
  found->at.resize(slabs * kSlab);
  found->after.resize(slabs * kSlab);
  std::vector<uint8_t> counts(n * kSlab);
  for (size_t slab = 0; slab < slabs; ++slab) {
    draw_slab(options_.seed, n, slab, counts.data());
    places_in_slab(counts.data(), n, below, &found->at[slab * kSlab], &found->after[slab * kSlab]);
  }
  kept = std::move(found);
  return kept;
}

std::optional<std::vector<double>> QuantileBootstrap::replicates(std::span<const double> sorted,
                                                                 double p, uint64_t stream) {
  if (sorted.size() < 2 || options_.resamples < 1) return std::nullopt;
  const auto found = places(sorted.size(), p);
  const size_t slabs = slabs_for(options_.resamples);
  const ResampleOrder order(options_.seed, stream, slabs);
  std::vector<double> quantiles(slabs * kSlab);
  for (size_t slab = 0; slab < slabs; ++slab) {
    double of_slab[kSlab];
    for (size_t b = 0; b < kSlab; ++b) {
      const size_t drawn = slab * kSlab + b;
      const double low = sorted[found->at[drawn]];
      const double high = sorted[std::min<size_t>(found->after[drawn], sorted.size() - 1)];
      of_slab[b] = low + found->share * (high - low);
    }
    order.place(of_slab, &quantiles[order.slab_of(slab) * kSlab]);
  }
  quantiles.resize(static_cast<size_t>(options_.resamples));
  return quantiles;
}

std::optional<QuantileRatio> QuantileBootstrap::ratio(std::span<const double> numerator,
                                                      std::span<const double> denominator, double p,
                                                      uint64_t stream) {
  if (numerator.empty() || denominator.empty()) return std::nullopt;
  if (!(numerator[0] > 0) || !(denominator[0] > 0)) return std::nullopt;
  uint64_t mix = stream;
  auto above = replicates(numerator, p, splitmix64(mix));
  const auto below = replicates(denominator, p, splitmix64(mix));
  if (!above || !below) return std::nullopt;
  for (size_t i = 0; i < above->size(); ++i) (*above)[i] /= (*below)[i];
  BootstrapOptions percentile = options_;
  percentile.method = BootstrapMethod::kPercentile;
  const double ratio = *quantile(numerator, p) / *quantile(denominator, p);
  const auto interval = bootstrap_interval(*above, ratio, 0, percentile);
  if (!interval) return std::nullopt;
  return QuantileRatio{ratio, *interval};
}

std::optional<Interval> quantile_interval(std::span<const double> sorted, double p,
                                          double confidence) {
  if (!(p > 0) || !(p < 1)) return std::nullopt;
  const auto n = static_cast<int64_t>(sorted.size());
  const double beyond = (1 - confidence) / 2;
  int64_t low = 0;   // the l-th smallest; 0: none
  int64_t high = 0;  // likewise
  double below = 0;  // P(B < k)
  for (int64_t k = 0; k <= n; ++k) {
    if (k >= 1 && below <= beyond) low = k;
    if (high == 0 && k >= 1 && 1 - below <= beyond) high = k;
    below += binomial_share(k, n, p);
  }
  if (low == 0 || high == 0) return std::nullopt;
  return Interval{sorted[static_cast<size_t>(low - 1)], sorted[static_cast<size_t>(high - 1)]};
}

std::optional<QuantileRatio> quantile_ratio(std::span<const double> numerator,
                                            std::span<const double> denominator, double p,
                                            const BootstrapOptions& options, uint64_t stream) {
  return QuantileBootstrap(options).ratio(numerator, denominator, p, stream);
}

}  // namespace assay::stats
