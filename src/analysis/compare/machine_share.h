// What the machine, and not the program, changed between two runs of a cell: by yardsticks.
//
// Two runs of one program on a shared machine differ by what the machine's other guests did, and
// all processes of a run may share that. The fixed works that a worker times right behind each call
// (backend/native/yardstick.h) show it. How much of it a cell's calls feel is learnt from processes
// of one side, which run one program: an analysis of covariance (Fisher 1932; Huitema 2011).
//
// Yardsticks don't show all of it. What they miss between two runs has no processes that could
// tell, so it is taken to be to what they show as it is among processes (docs/statistics.md).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/contrast/serial.h"
#include "analysis/rows/processes.h"

namespace assay {

// Fewest processes a side: two levels and two slopes are to be learnt from all of them.
inline constexpr size_t kFewestToAdjust = 5;

struct MachineShare {
  // Candidate's yardsticks over the base's: ratios of geometric means over processes.
  std::array<double, kYardsticks> yardsticks{1, 1};
  double ratio = 1;      // of the cell's times, candidate's over the base's, by the machine alone
  double explained = 0;  // share of the variance among one side's processes, adjusted R^2
  // Of ln(ratio): of the slopes, and ln(ratio)^2 (1 - explained) / explained for what yardsticks
  // miss.
  SeriesError error;
  // By what the variance within a side and its degrees of freedom change, because the slopes were
  // fitted to the same processes: (n - 2) / (n - 2 - slopes) for n of both sides, and its inverse.
  double widening = 1;
};

// Fits ln(figure) = level of its side + slopes * ln(yardsticks) by least squares over the processes
// of both sides, and takes slopes * (ln(yardsticks) - their mean over both sides) off each figure:
// both sides as they would be on one machine, half-way between theirs. `base` and `cand`: figures
// above 0, one a process. Absent, and the figures as they were, where either side has fewer than
// kFewestToAdjust processes or one without yardsticks, they don't vary apart from one another, or
// they explain nothing.
std::optional<MachineShare> take_machine_off(ProcessFigures& base, ProcessFigures& cand);

// Of cells together, as a geometric mean of `cells` of them; those not in `parts` have no share.
// Their errors add up, as if one process' luck were every cell's.
std::optional<MachineShare> combined_share(const std::vector<MachineShare>& parts, size_t cells);

}  // namespace assay
