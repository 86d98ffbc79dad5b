// Earlier runs of one program: by how much a cell differs from one run to the next.
//
// A pair of bundles can't show a shift of a run as a whole. The history can: neighbouring runs of
// an unchanged program differ by it each time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/compare/run_figures.h"
#include "analysis/compare/spread.h"

namespace assay {

// Fewer runs tell nothing of a spread.
inline constexpr int64_t kLeastHistory = 3;

class History {
 public:
  // Runs in the order in which they ran. The error of a parity record without a verdict.
  Status add(const Bundle& run);
  int64_t runs() const { return static_cast<int64_t>(means_.size()); }

  // Spread between two runs of these cells together, as the variance of the difference of ln of
  // their times: the mean square of the differences of neighbouring runs (von Neumann, Kent,
  // Bellinson and Hart 1941), less the part that their processes show (both errors), at least 0.
  // Differences of neighbours, because a program that was made faster or slower once then counts
  // once. With n runs the estimate has 2 (n - 1)^2 / (3 n - 4) degrees of freedom. Absent for fewer
  // than kLeastHistory runs that have all these cells.
  std::optional<Spread> between(const CellPlaces& cells, ProcessFigure figure) const;

 private:
  std::vector<RunFigures> means_;
  std::vector<RunFigures> typical_;
};

// Holds each cell, and cells combined, against the spread that the history shows between two runs
// of it: error^2 + 2 s_between^2. A cell of which the history says nothing is held against the
// spread of the other cells.
AlarmTests alarm_tests_of(const History& history);

// The comparison of compare(), with these alarm tests.
Result<Comparison> compare_with_history(const Bundle& base, const Bundle& cand,
                                        const CompareOptions& options,
                                        const std::set<std::string>& vary, const History& history);

// The reason why a run isn't one of the history of this base; empty: it is one. It belongs to the
// history if its identity differs by nothing but the code and the axes that `vary` names.
std::string unlike(const Bundle& base, const Bundle& run, std::set<std::string> vary);

}  // namespace assay
