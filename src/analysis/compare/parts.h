// The parts of a comparison of two bundles: one cell, and cells combined. Not yet adjusted or
// judged.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay {

struct CellPair {
  size_t stratum = 0;  // of the comparison
  std::string arm;
  const Group* base = nullptr;  // null: that bundle has no rows of it
  const Group* cand = nullptr;
};

// Values of two cells that count as independent, up to the dependence that their order shows.
enum class JudgedBy { kNothing, kRows, kProcesses };
JudgedBy judged_by(const CellPair& pair, const CompareOptions& options);

// The series of all these cells, both bundles', judged as one family: of processes' figures, less
// the machine's share where yardsticks show it, and one of rows.
struct SidesByGroup {
  std::map<const Group*, ComparedSide> sides;
  std::map<const Group*, MachineShare> machine;  // by the base's group of a pair

  const ComparedSide& at(const Group& group) const { return sides.at(&group); }
  std::optional<MachineShare> machine_of(const CellPair& pair) const;
};
SidesByGroup sides_by_group(std::span<const CellPair> family, const CompareOptions& options,
                            ProcessFigure figure);

ComparedCell compare_cell(Phase phase, const CellPair& pair, const SidesByGroup& sides,
                          const CompareOptions& options);

// Puts ratio, error, tests and interval of ln(ratio) in the place of those that the cell has; of no
// error the ratio alone.
void fill_tests(double log_ratio, const std::optional<stats::StandardError>& error,
                const CompareOptions& options, ComparedCell& cell);

// Fills too_few and ratio_range, by both sides' figures, one a process or run. A single figure on
// one side is taken for as sure as the other side's.
void note_if_few(std::span<const double> base, std::span<const double> cand, ComparedCell& cell);

// Geometric mean of the cells' ratios. Its error is that of the cells' own errors or, where that
// is larger, of one series a bundle: all the cells' rows in the order in which they ran (or their
// processes, those of one number as one), each standing for its share in the logarithm of the
// result, so that the machine's effect on several cells at once isn't taken for independent.
ComparedCell combine_cells(Phase phase, const std::vector<CellPair>& parts,
                           const SidesByGroup& sides, const CompareOptions& options);

// Fills alarm_error of cells judged by processes: an alarm has to beat the spread of the other
// cells too. Returns the spread of them all, as Comparison::between_cells.
std::optional<double> add_alarm_errors(std::vector<ComparedCell>& cells,
                                       std::vector<ComparedCell>& combined);

}  // namespace assay
