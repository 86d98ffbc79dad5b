// Repetitions of two programs that ran as pairs, one right behind the other: how long the
// candidate's take, in the base's time.
//
// The machine's state meanwhile (a neighbour, its clock) met both of a pair alike and cancels in
// their ratio. A difference of two processes doesn't: it is the same in all pairs of a process. So
// the unit is the pair of processes that served a round, and pairs within it tell only of that one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/contrast/units.h"

namespace assay {

// The same pairs, each as if two processes of its own had served it.
std::vector<PairedProcess> split_pairs(const std::vector<PairedProcess>& processes);

// ln of a ratio as the mean of one value a pair of processes.
struct PairedRatio {
  std::vector<int64_t> numbers;
  std::vector<double> values;
  double freedom = 1;  // share of the degrees of freedom that cutting values leaves

  double log_ratio() const;
  // Standard error over independent values: sd / sqrt(K), (K - 1) freedom degrees. Absent: fewer
  // than 2, or all the same.
  std::optional<stats::StandardError> error() const;
};

// kMean: R = mean x / mean y over all N pairs (x the candidate's, y the base's); the value of a
// pair of processes with n pairs is ln R + K / N (sum of (x - mean x) / m - sum of (y - mean y) /
// m'), m and m' the means' stats::log_scale(). So t is as a rule that of the difference of means
// with clusters (Cochran 1977, "Sampling Techniques", 9.2): a few stopped calls make ln R large and
// its error relative to either mean small, and would be alarms. Where one side takes longer in
// every pair it is that of ln R (sections 6.3 and 9.2), from which everything that a pair shares
// cancels. kMedian: a pair of processes has the median of ln(x / y) over its pairs; of ten or more
// a fifth is cut at each end, as of the processes of two bundles. Absent for no pairs, or means
// that no logarithm is of.
std::optional<PairedRatio> paired_ratio(std::span<const PairedProcess> processes,
                                        ProcessFigure figure);

// Geometric mean of several cells' ratios: processes of one number served them at the same time, so
// that their values count together.
PairedRatio combine_ratios(std::span<const PairedRatio> cells);

}  // namespace assay
