// Bootstrap intervals from resampled means.
#include "stats/bootstrap.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/random.h"
#include "stats/distributions.h"
#include "stats/summary.h"

namespace assay::stats {
namespace {

// Each block has a random stream of its own, so any thread may compute it.
constexpr size_t kBlock = 500;

// Two indices from one random number: the multiplication by n of 32 uniform bits, whose bias is
// below n / 2^32.
class IndexStream {
 public:
  IndexStream(Random random, uint64_t n) : random_(random), n_(n) {}
  void next_two(size_t& first, size_t& second) {
    const uint64_t bits = random_();
    first = static_cast<size_t>(((bits & 0xFFFFFFFFu) * n_) >> 32);
    second = static_cast<size_t>(((bits >> 32) * n_) >> 32);
  }

 private:
  Random random_;
  uint64_t n_;
};

double resampled_mean(std::span<const double> sample, IndexStream& indices) {
  double sum = 0;
  size_t first = 0;
  size_t second = 0;
  for (size_t drawn = 0; drawn + 1 < sample.size(); drawn += 2) {
    indices.next_two(first, second);
    sum += sample[first] + sample[second];
  }
  if (sample.size() % 2 == 1) {
    indices.next_two(first, second);
    sum += sample[first];
  }
  return sum / static_cast<double>(sample.size());
}

double acceleration_of(double influence2, double influence3) {
  return influence2 > 0 ? influence3 / (6 * std::pow(influence2, 1.5)) : 0;
}

// The level whose quantile is the BCa bound for the nominal level.
std::optional<double> bca_level(double level, double bias, double acceleration) {
  const auto z = normal_quantile(level);
  if (!z) return std::nullopt;
  const double denominator = 1 - acceleration * (bias + *z);
  if (!(denominator > 0)) return std::nullopt;
  return normal_cdf(bias + (bias + *z) / denominator);
}

}  // namespace

std::optional<ResampledMean> resample_mean(std::span<const double> sample,
                                           const BootstrapOptions& options, uint64_t stream,
                                           ThreadPool* pool) {
  assert(sample.size() <= UINT32_MAX);
  const auto center = mean(sample);
  if (sample.size() < 2 || !center || options.resamples < 1) return std::nullopt;
  if (std::ranges::all_of(sample, [&](double x) { return x == sample[0]; })) return std::nullopt;
  ResampledMean result;
  result.mean = *center;
  const auto n = static_cast<double>(sample.size());
  for (const double x : sample) {
    const double l = (x - *center) / n;
    result.influence2 += l * l;
    result.influence3 += l * l * l;
  }
  result.replicates.resize(static_cast<size_t>(options.resamples));
  uint64_t mixed = options.seed ^ stream;
  const uint64_t seed = splitmix64(mixed);
  const auto fill = [&](size_t begin, size_t end) {  // whole blocks: boundaries are multiples
    for (size_t block = begin; block < end; block += kBlock) {
      IndexStream indices(Random(seed, block / kBlock), sample.size());
      const size_t stop = std::min(end, block + kBlock);
      for (size_t i = block; i < stop; ++i) result.replicates[i] = resampled_mean(sample, indices);
    }
  };
  if (pool != nullptr) {
    pool->parallel_for(result.replicates.size(), kBlock, fill);
  } else {
    fill(0, result.replicates.size());
  }
  return result;
}

std::optional<Interval> mean_interval(const ResampledMean& sample,
                                      const BootstrapOptions& options) {
  std::vector<double> replicates = sample.replicates;
  return bootstrap_interval(replicates, sample.mean,
                            acceleration_of(sample.influence2, sample.influence3), options);
}

std::optional<Interval> ratio_interval(std::span<const RatioPair> pairs,
                                       const BootstrapOptions& options) {
  if (pairs.empty()) return std::nullopt;
  const auto weight = 1 / static_cast<double>(pairs.size());
  std::vector<double> replicates(pairs[0].numerator->replicates.size());
  double estimate = 0;
  double influence2 = 0;
  double influence3 = 0;
  const auto add = [&](const ResampledMean& sample, double sign) {
    assert(sample.replicates.size() == replicates.size());
    if (!(sample.mean > 0)) return false;
    const double scale = sign * weight / sample.mean;  // derivative of the statistic by the mean
    estimate += sign * weight * std::log(sample.mean);
    influence2 += sample.influence2 * scale * scale;
    influence3 += sample.influence3 * scale * scale * scale;
    for (size_t i = 0; i < replicates.size(); ++i) {
      if (!(sample.replicates[i] > 0)) return false;
      replicates[i] += sign * weight * std::log(sample.replicates[i]);
    }
    return true;
  };
  for (const RatioPair& pair : pairs) {
    if (!add(*pair.numerator, 1) || !add(*pair.denominator, -1)) return std::nullopt;
  }
  const auto interval =
      bootstrap_interval(replicates, estimate, acceleration_of(influence2, influence3), options);
  if (!interval) return std::nullopt;
  return Interval{std::exp(interval->low), std::exp(interval->high)};
}

std::optional<Interval> bootstrap_interval(std::vector<double>& replicates, double estimate,
                                           double acceleration, const BootstrapOptions& options) {
  std::optional<double> low = (1 - options.confidence) / 2;
  std::optional<double> high = 1 - *low;
  if (options.method == BootstrapMethod::kBca) {
    double below = 0;
    for (const double x : replicates) below += x < estimate ? 1 : x == estimate ? 0.5 : 0;
    const auto bias = normal_quantile(below / static_cast<double>(replicates.size()));
    if (!bias) return std::nullopt;  // the estimate lies outside its replicates
    low = bca_level(*low, *bias, acceleration);
    high = bca_level(*high, *bias, acceleration);
  }
  if (!low || !high) return std::nullopt;
  const auto low_bound = quantile_in_place(replicates, *low);
  const auto high_bound = quantile_in_place(replicates, *high);
  if (!low_bound || !high_bound) return std::nullopt;
  return Interval{*low_bound, *high_bound};
}

}  // namespace assay::stats
