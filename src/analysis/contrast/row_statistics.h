// Statistics of two arms' single rows: quantiles, means without some rows, whose errors come from
// the units of the contrast, because rows of one process are alike; ranks and effect sizes.
#pragma once

#include <optional>
#include <vector>

#include "analysis/contrast/contrast.h"

namespace assay {

// Quantile p of the arm's warm rows over that of the baseline's, with an interval as wide as the
// pair's dependence makes it. Where processes are the unit, it is the geometric mean over rounds of
// the ratio of the rounds' quantiles, with the interval of t over rounds (unpaired arms: Welch's).
// A bootstrap of whole rounds knows nothing beyond the slowest of a few processes: with five that
// differ by 20 % its interval of a ratio of p95 misses 1 in 8 to 10 % of equal arms. Else it is the
// percentile bootstrap of rows. Absent for fewer than two units. Processes too few for an interval
// (process_range.h) have their range.
std::optional<SpreadRatio> quantile_ratio_by_units(const ContrastInputs& in, const GroupPair& pair,
                                                   double p, const stats::Widening& widening,
                                                   stats::QuantileBootstrap& quantiles);

// True for the warm rows that count, by their place in the group.
using KeptRows = std::vector<bool>;

// Two-sided test of the difference of the means over those rows: by the units, where processes are
// those, else Welch's of the rows. Absent where that can't be had.
std::optional<stats::TestResult> test_of_rows(const ContrastInputs& in, const GroupPair& pair,
                                              const KeptRows& of_arm, const KeptRows& of_baseline,
                                              const stats::Widening& widening);

// Fills cohen_d, hedges_g, mann_whitney_u and vargha_delaney_a.
void add_row_effects(const ContrastInputs& in, const GroupPair& pair, Contrast& contrast);

// The widening of one pair, as a family of its own.
stats::Widening pair_widening(const ContrastInputs& in, const GroupPair& pair);

}  // namespace assay
