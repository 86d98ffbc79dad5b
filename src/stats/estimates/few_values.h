// Bootstrap intervals of means and of ratios of means whose coverage is their level for few values
// too.
//
// A bootstrap knows a sample's spread as that of its n values, (n - 1) / n of an unbiased variance,
// and not how unsure n values leave it: of 5 values a side a 95 % percentile interval of a ratio
// covers it in 88 %. And it has a third of the asymmetry that the studentised mean of skewed values
// has (Hesterberg 2015). So the interval here is the hull of two, both on the scale of logarithms:
// - the bootstrap's own, stretched about the estimate by expansion(), which is the widening that
//   Hesterberg's "expanded percentile interval" has for normal values;
// - that of t with Satterthwaite's degrees of freedom after Hall's cubic transformation (1992),
// which
//   takes out the skewness that the values show.
// The hull, because either alone is too narrow where the other isn't: the first for an arm of
// skewed times beside one of steady ones, the second where rare slow calls make the skewness itself
// unsure. docs/calibration.md, "Few values", has their coverage.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stats/resamples/bootstrap.h"

namespace assay::stats {

// Factor by which an interval of n values has to be wider than a bootstrap's if its error has df
// degrees of freedom: sqrt(n / (n - 1)) times the t quantile over the normal one. n >= 2.
double expansion(double n, double df, double confidence);

// BCa (mean_interval()) in the place of the bootstrap's own. Absent where that is, or if the mean
// isn't positive. options.method doesn't matter.
std::optional<Interval> calibrated_mean_interval(const ResampledMean& sample,
                                                 BootstrapOptions options);

// Percentile (ratio_interval()). Absent where that is. The samples know nothing of one another.
std::optional<Interval> calibrated_ratio_interval(std::span<const RatioPair> pairs,
                                                  BootstrapOptions options);

// The same of samples of which some were taken together, unit by unit, and resampled together
// (BootstrapSample::stream). An estimate's logarithm is the sum of weight * ln(mean) over all
// terms; terms of one entry of `independent` are of the same units, those of two know nothing of
// each other. No terms, or fewer than two units, are absent.
struct LogTerm {
  std::span<const double> values;  // one a unit
  double weight = 1;
};
std::optional<Interval> calibrated_ratio_interval(std::span<const RatioPair> pairs,
                                                  std::span<const std::vector<LogTerm>> independent,
                                                  BootstrapOptions options);

}  // namespace assay::stats
