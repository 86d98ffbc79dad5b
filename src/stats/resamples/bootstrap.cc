// Bootstrap intervals from resampled means.
#include "stats/resamples/bootstrap.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

#include "stats/distributions/distributions.h"
#include "stats/resamples/resample_order.h"
#include "stats/resamples/resamples.h"
#include "stats/samples/select.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

class SizeGroup;
struct Job {
  const SizeGroup* group;
  size_t first_slab;
  size_t last_slab;
};

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

// The sample's mean and influence, and room for its replicates; absent where it can't be resampled.
std::optional<ResampledMean> start(std::span<const double> sample, int64_t resamples) {
  assert(sample.size() <= UINT32_MAX);
  const auto center = mean(sample);
  if (sample.size() < 2 || !center || resamples < 1) return std::nullopt;
  const auto n = static_cast<double>(sample.size());
  ResampledMean result;
  result.n = sample.size();
  result.mean = *center;
  double farthest = 0;
  bool varies = false;
  for (const double x : sample) {
    farthest = std::max(farthest, std::abs(x - *center));
    varies = varies || x != sample[0];
  }
  if (!varies || !(farthest > 0) || !std::isfinite(farthest * n)) return std::nullopt;
  result.scale = farthest / n;
  for (const double x : sample) {
    const double l = (x - *center) / farthest;
    result.influence2 += l * l;
    result.influence3 += l * l * l;
  }
  result.replicates.resize(slabs_for(resamples) * kSlab);
  return result;
}

// Replicates of a product of ratios: logarithms are taken of products of many, not of each.
class RatioReplicates {
 public:
  explicit RatioReplicates(size_t count) : products_(count, 1.0), logs_(count, 0.0) {}

  // False if a replicate isn't positive: that of a mean of values that aren't.
  bool add(const RatioPair& pair) {
    const std::vector<double>& above = pair.numerator->replicates;
    const std::vector<double>& below = pair.denominator->replicates;
    assert(above.size() == products_.size() && below.size() == products_.size());
    if (least_ < 1e-100 || most_ > 1e100) fold();
    double smallest = 1;  // of all means
    double least = 1;
    double most = 1;
    for (size_t i = 0; i < products_.size(); ++i) {
      smallest = std::min(smallest, std::min(above[i], below[i]));
      products_[i] *= above[i] / below[i];
      least = std::min(least, products_[i]);
      most = std::max(most, products_[i]);
    }
    product_ *= pair.numerator->mean / pair.denominator->mean;
    least_ = least;
    most_ = most;
    return smallest > 0 && least > 0 && std::isfinite(most);
  }

  std::span<const double> ratios() const { return products_; }
  double ratio() const { return product_; }

  std::span<const double> logs(double weight) {
    fold();
    for (double& x : logs_) x *= weight;
    return logs_;
  }
  double log(double weight) const { return log_ * weight; }

 private:
  void fold() {
    for (size_t i = 0; i < logs_.size(); ++i) logs_[i] += std::log(products_[i]);
    log_ += std::log(product_);
    std::ranges::fill(products_, 1.0);
    product_ = 1;
  }

  std::vector<double> products_;  // since the last fold
  std::vector<double> logs_;
  double product_ = 1;  // the same of the means themselves
  double log_ = 0;
  double least_ = 1;
  double most_ = 1;
};

struct Workspace {
  std::vector<uint8_t> counts;
};

// The samples of one size, with the draws that they share.
class SizeGroup {
 public:
  SizeGroup(size_t size, const std::vector<size_t>& members,
            std::span<const BootstrapSample> samples, const BootstrapOptions& options,
            std::vector<std::optional<ResampledMean>>& results)
      : size_(size), seed_(options.seed), slabs_(slabs_for(options.resamples)) {
    values_.resize((members.size() + kTile - 1) / kTile * size * kTile);
    for (size_t m = 0; m < members.size(); ++m) {
      const BootstrapSample& sample = samples[members[m]];
      ResampledMean& result = *results[members[m]];
      members_.push_back({&result, ResampleOrder(options.seed, sample.stream, slabs_)});
      // Deviations from the mean keep the digits of values that are all alike.
      double* column = values_.data() + m / kTile * size * kTile + m % kTile;
      for (size_t i = 0; i < size; ++i) column[i * kTile] = sample.values[i] - result.mean;
    }
  }

  void add_jobs(std::vector<Job>& jobs) const {
    for (size_t slab = 0; slab < slabs_; slab += kJobSlabs) {
      jobs.push_back({this, slab, std::min(slab + kJobSlabs, slabs_)});
    }
  }

  void run(size_t first_slab, size_t last_slab, Workspace& space) const {
    const size_t together = std::clamp(kCountsBytes / (size_ * kSlab), size_t{1}, kJobSlabs);
    if (space.counts.size() < together * size_ * kSlab) {
      space.counts.resize(together * size_ * kSlab);
    }
    for (size_t from = first_slab; from < last_slab; from += together) {
      const size_t to = std::min(from + together, last_slab);
      for (size_t slab = from; slab < to; ++slab) {
        draw_slab(seed_, size_, slab, space.counts.data() + (slab - from) * size_ * kSlab);
      }
      for (size_t tile = 0; tile * kTile < members_.size(); ++tile) {
        for (size_t slab = from; slab < to; ++slab) {
          apply(space.counts.data() + (slab - from) * size_ * kSlab, tile, slab);
        }
      }
    }
  }

 private:
  // Slabs of one job: enough to be worth a thread's trip, few enough that their counts stay in its
  // cache.
  static constexpr size_t kJobSlabs = 8;
  static constexpr size_t kCountsBytes = size_t{256} << 10;

  void apply(const uint8_t* counts, size_t tile, size_t slab) const {
    double sums[kTile * kSlab];
    sum_slab(counts, size_, values_.data() + tile * size_ * kTile, sums);
    const auto n = static_cast<double>(size_);
    const size_t end = std::min(members_.size(), (tile + 1) * kTile);
    for (size_t m = tile * kTile; m < end; ++m) {
      const Member& member = members_[m];
      double* out = member.result->replicates.data() + member.order.slab_of(slab) * kSlab;
      const double* sum = sums + m % kTile * kSlab;
      double replicates[kSlab];
      for (size_t b = 0; b < kSlab; ++b) replicates[b] = member.result->mean + sum[b] / n;
      member.order.place(replicates, out);
    }
  }

  struct Member {
    ResampledMean* result;
    ResampleOrder order;
  };

  size_t size_;
  uint64_t seed_;
  size_t slabs_;
  std::vector<double> values_;  // [tile, value, sample of the tile], less the sample's mean
  std::vector<Member> members_;
};

}  // namespace

std::vector<std::optional<ResampledMean>> resample_means(std::span<const BootstrapSample> samples,
                                                         const BootstrapOptions& options,
                                                         ThreadPool* pool) {
  std::vector<std::optional<ResampledMean>> results(samples.size());
  const auto begin = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) results[i] = start(samples[i].values, options.resamples);
  };
  if (pool != nullptr) {  // most of its time goes into the replicates' pages
    pool->parallel_for(samples.size(), 1, begin);
  } else {
    begin(0, samples.size());
  }
  std::map<size_t, std::vector<size_t>> by_size;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (results[i]) by_size[samples[i].values.size()].push_back(i);
  }
  std::vector<SizeGroup> groups;
  for (const auto& [size, members] : by_size) {
    groups.emplace_back(size, members, samples, options, results);
  }
  std::vector<Job> jobs;
  for (const SizeGroup& group : groups) group.add_jobs(jobs);
  std::atomic<size_t> next = 0;
  const auto work = [&](size_t) {
    Workspace space;
    for (size_t j = next++; j < jobs.size(); j = next++) {
      jobs[j].group->run(jobs[j].first_slab, jobs[j].last_slab, space);
    }
  };
  if (pool != nullptr && jobs.size() > 1) {
    pool->run(work);
  } else {
    work(0);
  }
  for (auto& result : results) {
    if (result) result->replicates.resize(static_cast<size_t>(options.resamples));
  }
  return results;
}

std::optional<Interval> mean_interval(const ResampledMean& sample,
                                      const BootstrapOptions& options) {
  return bootstrap_interval(sample.replicates, sample.mean,
                            acceleration_of(sample.influence2, sample.influence3), options);
}

std::optional<Interval> ratio_interval(std::span<const RatioPair> pairs,
                                       const BootstrapOptions& options) {
  if (pairs.empty()) return std::nullopt;
  const auto weight = 1 / static_cast<double>(pairs.size());
  RatioReplicates replicates(pairs[0].numerator->replicates.size());
  double influence2 = 0;
  double influence3 = 0;
  const auto add_influence = [&](const ResampledMean& sample, double sign) {
    // The statistic's derivative by the mean, times the unit of the sums.
    const double scale = sign * weight / sample.mean * sample.scale;
    influence2 += sample.influence2 * scale * scale;
    influence3 += sample.influence3 * scale * scale * scale;
  };
  for (const RatioPair& pair : pairs) {
    if (!(pair.numerator->mean > 0) || !(pair.denominator->mean > 0)) return std::nullopt;
    if (!replicates.add(pair)) return std::nullopt;
    add_influence(*pair.numerator, 1);
    add_influence(*pair.denominator, -1);
  }
  const double acceleration = acceleration_of(influence2, influence3);
  if (pairs.size() == 1) {
    return bootstrap_interval(replicates.ratios(), replicates.ratio(), acceleration, options);
  }
  const std::span<const double> logs = replicates.logs(weight);
  const auto interval = bootstrap_interval(logs, replicates.log(weight), acceleration, options);
  return interval ? std::optional(exp_of(*interval)) : std::nullopt;
}

std::optional<Interval> bootstrap_interval(std::span<const double> replicates, double estimate,
                                           double acceleration, const BootstrapOptions& options) {
  if (replicates.empty()) return std::nullopt;
  std::optional<double> low = (1 - options.confidence) / 2;
  std::optional<double> high = 1 - *low;
  if (options.method == BootstrapMethod::kBca) {
    const auto below = static_cast<double>(count_below_in_halves(replicates, estimate)) / 2;
    const auto bias = normal_quantile(below / static_cast<double>(replicates.size()));
    if (!bias) return std::nullopt;  // the estimate lies outside its replicates
    low = bca_level(*low, *bias, acceleration);
    high = bca_level(*high, *bias, acceleration);
  }
  if (!low || !high) return std::nullopt;
  const auto low_bound = quantile_unsorted(replicates, *low);
  const auto high_bound = quantile_unsorted(replicates, *high);
  if (!low_bound || !high_bound) return std::nullopt;
  return Interval{*low_bound, *high_bound};
}

}  // namespace assay::stats
