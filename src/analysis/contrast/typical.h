// The ratio of two arms' typical calls, by pairs.
#pragma once

#include <optional>

#include "analysis/contrast/estimate.h"
#include "stats/samples/summary.h"

namespace assay {

// The median over repetitions of the ratio of both arms' times in the same repetition, with the
// interval that order statistics give: ranks as far from the middle as the binomial distribution of
// one half says (Thompson 1936), times the pair's widening. Where processes are the unit it is the
// geometric mean over rounds of the rounds' medians, with that of t over rounds: a process' medians
// are all alike as slow. Absent where arms aren't paired, and where so few pairs have no such
// interval (5 repetitions, 1 round). `confidence`: of the interval.
std::optional<SpreadRatio> typical_ratio(const ContrastInputs& in, const GroupPair& pair,
                                         const stats::Widening& widening, double confidence);

// Figures of units with a fifth cut at each end (stats::trimmed_series()), because a neighbour on
// the same core makes some processes up to twice as slow, as many in one run as in the next only by
// chance. Fewer than ten stay as they are: the cut would cost more in degrees of freedom than it
// saves.
stats::TrimmedSeries cut_series(std::vector<double> values);

// The same as an estimate: the mean over rounds of the medians of ln(cand / base), or over the
// repetitions of one round, as a cut_series(). It isn't widened by what units have in common.
Estimate typical_estimate(const std::vector<PairedProcess>& rounds, bool by_processes);

}  // namespace assay
