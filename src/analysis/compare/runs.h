// Several runs a side: rows in processes in runs.
//
// A shift of a run as a whole (another day, another neighbour, another place of the run's memory)
// is the same in all its processes, so that no number of them shows it. Several runs do: the run is
// then the unit, and the differences of its processes are in its figure.
#pragma once

#include <set>
#include <span>
#include <string>

#include "analysis/compare/compare.h"

namespace assay {

// The comparison of compare() for one bundle or more a side, at least two on one of them. A cell's
// figure of a run is ln of the mean of its processes' means (typical calls: medians, cut as
// always); the two sides are held against each other by Welch's test (1947) of these logarithms,
// degrees of freedom by Satterthwaite. A side of one run takes the other side's variance: its own
// shows nothing of the spread between runs. An alarm needs nothing beyond that test, which has the
// spread between runs.
// bad_input also if bundles of one side differ on an axis that `vary` doesn't name.
Result<Comparison> compare_runs(std::span<const Bundle> base, std::span<const Bundle> cand,
                                const CompareOptions& options, const std::set<std::string>& vary);

}  // namespace assay
