// The ratio of one quantile of two samples, with a bootstrap interval: medians and tails, where
// bootstrap.h has means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stats/bootstrap.h"

namespace assay::stats {

struct QuantileRatio {
  double ratio = 1;
  Interval interval;
};

// Of two ascending samples of positive values: quantile p (type 7) of the first over that of the
// second, with the percentile interval of Efron (1979), each sample resampled on its own; `stream`
// tells ratios of one analysis apart. Absent for n < 2 or a value that isn't positive.
//
// Read a tail's interval with care: from n values, resamples can't hold anything beyond the largest
// of them.
std::optional<QuantileRatio> quantile_ratio(std::span<const double> numerator,
                                            std::span<const double> denominator, double p,
                                            const BootstrapOptions& options, uint64_t stream);

}  // namespace assay::stats
