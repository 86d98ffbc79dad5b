// Where worker processes are too few for an interval: the range of their own figures.
#pragma once

#include <optional>
#include <span>

#include "analysis/contrast/units.h"
#include "stats/intervals.h"

namespace assay {

// Least and largest of at least two values; absent: there are fewer.
std::optional<stats::Interval> range_of(std::span<const double> values);

// Of one group: least and largest mean of its processes, in milliseconds. Absent where processes
// aren't the stratum's unit, or are fewer than two or at least kLeastProcessesOfInterval.
std::optional<stats::Interval> mean_process_range(ContrastUnit unit, const UnitSeries& series);

// Two arms' processes, a value each. Paired: least and largest ratio within a round. Else from the
// smallest arm / the largest baseline to the largest / the smallest.
std::optional<stats::Interval> ratio_range(std::span<const double> arm,
                                           std::span<const double> baseline, bool paired);

// The same of arm - baseline.
std::optional<stats::Interval> difference_range(std::span<const double> arm,
                                                std::span<const double> baseline, bool paired);

// Whether either count is of processes that are too few for an interval.
bool are_few_processes(int64_t arm, int64_t baseline);
// Whether an arm of the contrast has so few that their range stands for an interval.
bool has_few_processes(const Contrast& contrast);

// Whether a range of ratios agrees with a verdict of tests, which rest on the normal distribution
// of so few processes alone: wholly beyond the margin on the verdict's side, or wholly within it.
bool bears_out(const std::optional<stats::Interval>& ratio_range, Verdict verdict, double margin);

}  // namespace assay
