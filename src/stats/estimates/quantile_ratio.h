// The ratio of one quantile of two samples, with a bootstrap interval: medians and tails, where
// bootstrap.h has means.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "stats/resamples/bootstrap.h"

namespace assay::stats {

struct QuantileRatio {
  double ratio = 1;
  Interval interval;
};

// Resampled quantiles of many samples. A resample of ascending values is a resample of their
// places, so where its quantile lies depends on the sample's size alone: found once for each size
// and p, and kept. May be used from several threads; the results depend on none of this.
class QuantileBootstrap {
 public:
  explicit QuantileBootstrap(const BootstrapOptions& options) : options_(options) {}

  // Quantile p (type 7) of each resample of an ascending sample. Absent for n < 2.
  std::optional<std::vector<double>> replicates(std::span<const double> sorted, double p,
                                                uint64_t stream);

  // Quantile p of one ascending sample of positive values over that of another, with the percentile
  // interval; `stream` tells ratios of one analysis apart. Absent for n < 2 or a value that isn't
  // positive.
  //
  // Read a tail's interval with care: from n values, resamples can't hold anything beyond the
  // largest of them.
  std::optional<QuantileRatio> ratio(std::span<const double> numerator,
                                     std::span<const double> denominator, double p,
                                     uint64_t stream);

 private:
  struct Places {
    std::vector<uint32_t> at;     // of the order statistic below the quantile, by resample
    std::vector<uint32_t> after;  // of the next one; n where there is none
    double share = 0;             // share of the way between them at which the quantile lies
  };
  std::shared_ptr<const Places> places(size_t n, double p);

  BootstrapOptions options_;
  std::mutex mutex_;
  std::map<std::pair<size_t, double>, std::shared_ptr<const Places>> places_;
};

// Interval of quantile p of the distribution behind an ascending sample, by order statistics (Wilks
// 1948): from the largest l to the smallest u with P(B < l) and P(B >= u) at most (1 - confidence)
// / 2 each, B binomial (n, p). It covers in at least `confidence` of samples, whatever the
// distribution. Absent where n values have no such ends: p95 needs 72 values for 95 %, a median 6.
std::optional<Interval> quantile_interval(std::span<const double> sorted, double p,
                                          double confidence);

// One such ratio.
std::optional<QuantileRatio> quantile_ratio(std::span<const double> numerator,
                                            std::span<const double> denominator, double p,
                                            const BootstrapOptions& options, uint64_t stream);

}  // namespace assay::stats
