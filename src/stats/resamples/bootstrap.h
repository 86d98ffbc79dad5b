// Bootstrap intervals of a mean, of a ratio of means, and of the geometric mean of such ratios over
// strata, all from one set of resampled means for each sample.
//
// Samples are resampled independently of one another, so the b-th replicate of a statistic of
// several samples is the statistic of their b-th replicate means: each sample is resampled once,
// however many intervals it takes part in. Samples of one size are resampled with the same draws
// (resamples.h), whose order is shuffled by stream: no two samples' b-th replicates come from the
// same draw but by chance, one in as many as there are resamples. Replicates are the same bits on
// every machine and for any number of threads; they depend on seed, stream and values alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/process/thread_pool.h"
#include "stats/samples/intervals.h"

namespace assay::stats {

enum class BootstrapMethod {
  kPercentile,  // Efron (1979): quantiles of the replicates
  kBca,         // Efron (1987): corrected for bias and for skewness (acceleration)
};

struct BootstrapOptions {
  int64_t resamples = 10000;
  uint64_t seed = 42;
  double confidence = 0.95;
  BootstrapMethod method = BootstrapMethod::kBca;
};

// A sample's mean and the means of its resamples.
struct ResampledMean {
  size_t n = 0;  // values
  double mean = 0;
  std::vector<double> replicates;
  // Sums of the empirical influence values l_i = x_i - mean, from which the acceleration comes.
  double scale = 0;       // the largest |l_i| / n, which keeps the sums in range
  double influence2 = 0;  // sum((l / (n scale))^2)
  double influence3 = 0;  // sum((l / (n scale))^3)
};

struct BootstrapSample {
  std::span<const double> values;
  uint64_t stream = 0;  // tells samples of one analysis apart
};

// The samples' resampled means, in their order; absent for n < 2, for a sample of one value
// repeated, whose mean has no estimable error, and where sums overflow. Give many samples at once:
// drawing costs most, and samples of one size share it (the result is the same as one by one). Each
// takes 8 bytes a resample, so a very large analysis goes through its samples in portions.
std::vector<std::optional<ResampledMean>> resample_means(std::span<const BootstrapSample> samples,
                                                         const BootstrapOptions& options,
                                                         ThreadPool* pool = nullptr);

std::optional<Interval> mean_interval(const ResampledMean& sample, const BootstrapOptions& options);

// One stratum's two arms; both means positive.
struct RatioPair {
  const ResampledMean* numerator = nullptr;
  const ResampledMean* denominator = nullptr;
};

// Interval of exp(mean over strata of ln(numerator mean / denominator mean)), each stratum weighing
// the same and resampled within itself. One pair: the interval of a ratio of means. For several
// samples the acceleration is sum(l^3/n^3) / (6 sum(l^2/n^2)^1.5) over all of them (Davison and
// Hinkley 1997, section 5.3.2). Absent for no pairs, a mean that isn't positive, or replicates
// that don't spread around the estimate.
std::optional<Interval> ratio_interval(std::span<const RatioPair> pairs,
                                       const BootstrapOptions& options);

// The interval of an estimate from its replicates.
std::optional<Interval> bootstrap_interval(std::span<const double> replicates, double estimate,
                                           double acceleration, const BootstrapOptions& options);

}  // namespace assay::stats
