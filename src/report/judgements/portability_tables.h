// The tables of a judgement across bundles. `most` rows of each: the caller counts the rows left
// out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/tables/table.h"
#include "portability/portability.h"
#include "report/report.h"

namespace assay {

inline constexpr size_t kEveryRow = static_cast<size_t>(-1);

// A table, and how many rows it lacks.
struct CappedTable {
  Table table;
  size_t left_out = 0;
};
CappedTable capped(Table table, size_t most);

// One row a bundle beside the first: how it differs, and how often each verdict is given.
CappedTable regime_table(const Portability& of, size_t most);
// One row a claim over all bundles; `by_axis`: one an axis that has points.
CappedTable claim_table(const Portability& of, bool by_axis, size_t most);
// One row a claim and bundle.
CappedTable claim_regime_table(const Portability& of, size_t most);
// The headline matrix: a row an arm and bundle, a column a model class, in each field the prefill
// gain and the rows lost in decode.
CappedTable headline_matrix_table(const Portability& of, size_t most);
// The same, one row a field, with intervals.
CappedTable headline_table(const Portability& of, size_t most);
// Every verdict, or those that are a change or a crash.
CappedTable verdict_table(const Portability& of, bool changes_alone, size_t most);
// Verdicts beside one regime, with the interval of each ratio.
Table moves_table(const Portability& of, size_t regime);
// The columns by these names alone.
Table with_columns(const Table& table, const std::vector<std::string>& names);

// The one axis of the identity on which the index's bundles differ: "threads"; else the index's
// own: "device".
std::string axis_behind(const Portability& of, const RobustnessIndex& index);
// "FAILS: ...": the conclusion, in one sentence.
std::string portability_outcome(const Portability& of);
// All of it, the outcome first.
std::vector<ReportSection> portability_sections(const Portability& of);
// "portability: 2 bundles beside a; 4 conditions (baseline eager)".
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
