// Widening of the errors of a bundle's means and ratios by the dependence of its repetitions.
#pragma once

#include <span>
#include <vector>

#include "analysis/contrast/dependence.h"
#include "analysis/contrast/units.h"

namespace assay {

// Dependence of the warm latencies of a bundle's groups, in their order; a family is a phase. Rows
// that compiled something are left out: they come first for a reason, and aren't the machine's
// doing.
std::vector<Dependence> group_dependences(const Samples& samples);

// Inflation of each group's mean by the dependence of warm rows within its worker processes, for
// which families and rows are as above.
std::vector<double> inflations_within_processes(const Samples& samples);

// Dependence of the units that the interval of a group's mean is made of: where those are
// processes, of their series, else of its rows (`of_rows`: group_dependences()).
std::vector<Dependence> unit_dependences(const Samples& samples, const Units& units,
                                         const std::vector<Dependence>& of_rows);

// Widening of the standard error of each pair's ratio, against that of independent units. It is the
// widening of the series of differences x / mean - y / mean', in which the machine's effect on both
// arms cancels as it does in the ratio: over rounds where processes are the unit, else over rows by
// repetition. Families are phases; none for the pair of a group with itself. Rounds are few: their
// r counts sooner, and one standard error above its estimate (kRuleOfRounds in the source).
std::vector<stats::Widening> contrast_widenings(const Samples& samples, const Units& units,
                                                std::span<const GroupPair> pairs);

}  // namespace assay
