// The machine's share, and not the program's, in a cell's change between two runs: by yardsticks.
//
// Two runs of one program on a shared machine differ by the work of the machine's other guests, and
// all processes of a run may share that. The fixed works that a worker times right behind each call
// (backend/native/yardstick.h) show it. The share of it that a cell's calls feel is learnt from
// processes of one side, which run one program: an analysis of covariance (Fisher 1932; Huitema
// 2011).
//
// Yardsticks don't show all of it. No processes tell the part that they miss between two runs, so
// it is taken to be to the part that they show as it is among processes (docs/comparing.md).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/rows/processes.h"
#include "stats/hypotheses/tests.h"

namespace assay {

// Fewest processes a side: two levels and two slopes are to be learnt from all of them.
inline constexpr size_t kFewestToAdjust = 5;

struct MachineShare {
  // Candidate's yardsticks over the base's: ratios of geometric means over processes.
  std::array<double, kYardsticks> yardsticks{1, 1};
  double ratio = 1;      // of the cell's times, candidate's over the base's, by the machine alone
  double explained = 0;  // share of the variance among one side's processes, adjusted R^2
  // Error of ln(ratio): that of the slopes, and ln(ratio)^2 (1 - explained) / explained for the
  // part that yardsticks miss.
  stats::StandardError error;
  // Factor on the variance within a side, (n - 2) / (n - 2 - slopes) for n processes of both sides,
  // because the slopes were fitted to these. Its degrees of freedom get the inverse.
  double widening = 1;
};

// Fits ln(figure) = level of its side + slopes * ln(yardsticks) by least squares over the processes
// of both sides, and takes slopes * (ln(yardsticks) - their mean over both sides) off each figure:
// both sides as they would be on one machine, half-way between theirs. `base` and `cand`: figures
// above 0, one a process. Absent, and the figures as they were, where either side has fewer than
// kFewestToAdjust processes or one without yardsticks, they don't vary apart from one another, or
// they explain nothing.
std::optional<MachineShare> take_machine_off(ProcessFigures& base, ProcessFigures& cand);

// Share of cells together, as a geometric mean of `cells` of them; those not in `parts` have no
// share. Their errors add up, as if one process' luck were every cell's.
std::optional<MachineShare> combined_share(const std::vector<MachineShare>& parts, size_t cells);

}  // namespace assay
