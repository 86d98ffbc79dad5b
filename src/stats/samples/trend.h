// Drift along the order of a series: its size and whether it is more than chance.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stats/samples/intervals.h"

namespace assay::stats {

// Mann (1945), Kendall (1975): S = number of pairs that rise minus pairs that fall, in the order
// given; normal with tie-corrected variance (n(n-1)(2n+5) - sum t(t-1)(2t+5)) / 18 and continuity
// correction. Assumes that without drift the order is exchangeable. Absent for n < 4, where all
// values are the same, or where one isn't finite. O(n log n).
struct TrendTest {
  double s = 0;
  double z = 0;
  double p = 1;  // two-sided
  double log_p = 0;
};
std::optional<TrendTest> mann_kendall(std::span<const double> series);
// The test over several series, each of which may have its own level: S and its variance are summed
// over them (Hirsch, Slack and Smith 1982). Series that have no test of their own don't count;
// absent where none has one.
std::optional<TrendTest> mann_kendall(std::span<const std::vector<double>> parts);

// Theil (1950), Sen (1968): median of (y_j - y_i) / (x_j - x_i) over pairs with x_i < x_j. All
// pairs count up to 512 points; beyond, the pairs (i, i + n/2) alone (Theil's incomplete method),
// so that the cost stays linear. x ascending. Absent without two different x.
std::optional<double> theil_sen_slope(std::span<const double> x, std::span<const double> y);

// The slope with Sen's interval from the variance of Kendall's S (tie-corrected, normal; Sen 1968,
// Gilbert 1987), and the intercept median(y) - slope median(x). All pairs count: n at most 4096.
// The interval is absent where it would reach beyond the smallest or largest slope.
struct TrendLine {
  double slope = 0;
  double intercept = 0;
  std::optional<Interval> interval;  // of the slope
};
std::optional<TrendLine> theil_sen(std::span<const double> x, std::span<const double> y,
                                   double confidence = 0.95);

}  // namespace assay::stats
