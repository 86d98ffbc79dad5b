// The tables and sentences of a judgement across bundles.
#pragma once

#include <string>
#include <vector>

#include "base/tables/table.h"
#include "portability/portability.h"

namespace assay {

// One row a bundle beside the first: how it differs, and how often each verdict is given.
Table regime_table(const Portability& of);
// One row a claim over all bundles; `by_axis`: one an axis that has points.
Table claim_table(const Portability& of, bool by_axis);
// One row a claim and bundle.
Table claim_regime_table(const Portability& of);
// The headline matrix: a row an arm and bundle, a column a model class, in each field the prefill
// gain and the rows lost in decode.
Table headline_matrix_table(const Portability& of);
// The same, one row a field, with intervals.
Table headline_table(const Portability& of);
Table verdict_table(const Portability& of);
// Verdicts beside one regime, with the interval of each ratio.
Table moves_table(const Portability& of, size_t regime);
// The columns by these names alone.
Table with_columns(const Table& table, const std::vector<std::string>& names);

// The one axis of the identity on which the index's bundles differ: "threads"; else the index's
// own: "device".
std::string axis_behind(const Portability& of, const RobustnessIndex& index);
// "FAILS: ...": the conclusion, in one sentence.
std::string portability_outcome(const Portability& of);
// "2 bundles beside a; 4 conditions (baseline eager)".
std::string measured_text(const Portability& of);
// Axes on which each bundle differs from the first, with both values.
std::vector<std::string> difference_lines(const Portability& of);
// Sentences that say how often the control moved, bundle by bundle.
std::vector<std::string> control_lines(const Portability& of);
// Flips first, then shifts, each with the axis that is responsible; then means that differ without
// a verdict.
std::vector<std::string> change_sentences(const Portability& of);

// "24.1 %" of 0.241.
std::string gain_text(double share);
// "3/30".
std::string lost_of_text(const CrashRate& rate);

}  // namespace assay
