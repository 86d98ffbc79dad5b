// Range of worker processes' own figures, for processes too few for an interval.
#pragma once

#include <optional>
#include <span>

#include "analysis/contrast/units.h"
#include "stats/samples/intervals.h"

namespace assay {

// Degrees of freedom of so many processes, which an interval needs however it gets them.
inline constexpr double kLeastFreedomOfInterval = kLeastProcessesOfInterval - 1;

// Least and largest of at least two values; absent: there are fewer.
std::optional<stats::Interval> range_of(std::span<const double> values);

// The least and largest mean of one group's processes, in milliseconds, where they are fewer than
// kLeastProcessesOfInterval; else absent, as where processes aren't the stratum's unit.
std::optional<stats::Interval> mean_process_range(ContrastUnit unit, const UnitSeries& series);

// Two arms' processes, a value each. Paired: least and largest ratio within a round. Else from the
// smallest arm / the largest baseline to the largest / the smallest.
std::optional<stats::Interval> ratio_range(std::span<const double> arm,
                                           std::span<const double> baseline, bool paired);

// The same of arm - baseline.
std::optional<stats::Interval> difference_range(std::span<const double> arm,
                                                std::span<const double> baseline, bool paired);

// True if either arm has fewer processes than kLeastProcessesOfInterval.
bool are_few_processes(int64_t arm, int64_t baseline);
// True if an arm has so few that their range stands in the place of the contrast's intervals.
bool has_few_processes(const Contrast& contrast);

// True if a range of ratios agrees with a verdict of tests, which rest on the normal distribution
// of so few processes alone: it lies wholly beyond the margin on the verdict's side, or wholly
// within it.
bool bears_out(const std::optional<stats::Interval>& ratio_range, Verdict verdict, double margin);

}  // namespace assay
