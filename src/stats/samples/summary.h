// Description of one sample: location, spread, quantiles. A figure that a sample can't give is
// absent.
//
// Every function takes finite values. A result that overflows is absent, and so is a variance that
// isn't 0 but below the smallest normal double.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::stats {

// The moments of a sample that tests need, so that each also works from published figures.
struct Moments {
  int64_t n = 0;
  double mean = 0;
  double variance = 0;  // with n - 1
};

// sum(x) / n. Absent for n = 0.
std::optional<double> mean(std::span<const double> sample);
// sum((x - mean)^2) / (n - 1), two passes. Absent for n < 2.
std::optional<double> variance(std::span<const double> sample);
// Square root of the variance. Absent for n < 2.
std::optional<double> standard_deviation(std::span<const double> sample);
// Absent for n < 2.
std::optional<Moments> moments(std::span<const double> sample);

std::vector<double> sorted(std::span<const double> sample);

// Quantile by linear interpolation between order statistics, type 7 of Hyndman and Fan (1996), as R
// and NumPy have it: h = (n - 1) p, x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h]).
// `sorted` ascending, 0 <= p <= 1. Absent for n = 0.
std::optional<double> quantile(std::span<const double> sorted, double p);
// The same without a sorted sample: O(n), reorders its argument.
std::optional<double> quantile_in_place(std::span<double> sample, double p);
// The same, leaving the sample as it is; several times faster for thousands of values.
std::optional<double> quantile_unsorted(std::span<const double> sample, double p);

// The quantile, if the sample is large enough to hold one observation beyond it on average:
// n * min(p, 1 - p) >= 1. So p90 needs n >= 10, p95 n >= 20, p99 n >= 100; with fewer, a
// "percentile" is the maximum under another name.
std::optional<double> percentile(std::span<const double> sorted, double p);

// quantile(sorted, 0.5), for any n >= 1.
std::optional<double> median(std::span<const double> sorted);

// Mean of the values that are left after floor(share * n) are cut from each end; 0 <= share < 0.5.
std::optional<double> trimmed_mean(std::span<const double> sorted, double share);

// A sample as each value's share in its trimmed mean, in the sample's order: the ordinary mean of
// `values` is the trimmed mean, and the ordinary standard error of that mean is Yuen's (1974),
// sqrt((n - 1) s_w^2 / (h (h - 1))), s_w^2 the variance of the sample with its ends drawn in
// (winsorised) and h the values that aren't cut. Its degrees of freedom, h - 1, are `freedom` times
// the ordinary n - 1. 0 <= share < 0.5; a sample stays as it is if none of its values is to be cut,
// or fewer than two would be left.
struct TrimmedSeries {
  std::vector<double> values;
  double freedom = 1;
};
TrimmedSeries trimmed_series(std::span<const double> sample, double share);

// Median of |x - median|, not scaled (1.4826 times it estimates a normal sd). Absent for n = 0.
std::optional<double> median_absolute_deviation(std::span<const double> sorted);

// Tukey's fences (1977): quartiles (type 7) -+ k times the interquartile range; k = 1.5 inner, 3
// outer. Absent for n < 4.
struct Fences {
  double low = 0;
  double high = 0;
};
std::optional<Fences> tukey_fences(std::span<const double> sorted, double k = 1.5);

// The slow end: p99, and the largest value where there are too few for a p99. `sorted` isn't empty.
double p99_or_max(std::span<const double> sorted);

}  // namespace assay::stats
