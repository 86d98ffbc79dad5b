// Resamples of a sorted sample are counts of its places, so that a quantile of one needs no sort.
#include "stats/quantile_ratio.h"

#include <vector>

#include "base/random.h"
#include "stats/summary.h"

namespace assay::stats {
namespace {

class Resampler {
 public:
  Resampler(std::span<const double> sorted, double p, Random random)
      : sorted_(sorted), p_(p), random_(random), counts_(sorted.size()) {}

  // Quantile of one resample.
  double next() {
    std::ranges::fill(counts_, 0u);
    const auto n = static_cast<uint64_t>(sorted_.size());
    for (size_t drawn = 0; drawn < sorted_.size(); ++drawn) {
      ++counts_[random_.below(n)];
    }
    const double place = p_ * static_cast<double>(n - 1);
    const auto below = static_cast<size_t>(place);
    const double low = at(below);
    if (below + 1 >= sorted_.size()) return low;
    return low + (place - static_cast<double>(below)) * (at(below + 1) - low);
  }

 private:
  // The value at this place of the sorted resample.
  double at(size_t place) const {
    size_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > place) return sorted_[i];
    }
    return sorted_.back();
  }

  std::span<const double> sorted_;
  double p_;
  Random random_;
  std::vector<uint32_t> counts_;
};

}  // namespace

std::optional<QuantileRatio> quantile_ratio(std::span<const double> numerator,
                                            std::span<const double> denominator, double p,
                                            const BootstrapOptions& options, uint64_t stream) {
  if (numerator.size() < 2 || denominator.size() < 2 || options.resamples < 1) return std::nullopt;
  if (!(numerator[0] > 0) || !(denominator[0] > 0)) return std::nullopt;
  uint64_t mixed = options.seed ^ stream;
  const uint64_t seed = splitmix64(mixed);
  Resampler above(numerator, p, Random(seed, 0));
  Resampler below(denominator, p, Random(seed, 1));
  std::vector<double> replicates;
  for (int64_t i = 0; i < options.resamples; ++i) replicates.push_back(above.next() / below.next());
  BootstrapOptions percentile = options;
  percentile.method = BootstrapMethod::kPercentile;
  const double ratio = *quantile(numerator, p) / *quantile(denominator, p);
  const auto interval = bootstrap_interval(replicates, ratio, 0, percentile);
  if (!interval) return std::nullopt;
  return QuantileRatio{ratio, *interval};
}

}  // namespace assay::stats
