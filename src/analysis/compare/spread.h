// Spread of the cells of one comparison beyond the errors that their processes show.
//
// Something may change between two runs that neither run shows: where a file lies in memory, who
// else was on the machine. It moves each cell by a little, and no number of processes tells of it.
// The other cells do: where nothing but such chance lies between two runs, their ratios scatter by
// more than their errors say. A random-effects estimate of that scatter goes into the error that an
// alarm has to beat. A shift that all cells share doesn't scatter and stays unseen.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "stats/hypotheses/tests.h"

namespace assay {

// ln of a cell's ratio with its error by processes. Cells of one `group` (an arm in a phase) are
// held against their own mean, so that an arm that changed as a whole isn't taken for chance.
struct CellRatio {
  size_t group = 0;
  double log_ratio = 0;
  stats::StandardError error;
};

struct Spread {
  double square = 0;  // variance of ln(ratio) between cells, beyond their errors; 0: none shows
  double raw = 0;     // the same with the share of the errors
  double df = 0;      // of the estimate
};

// DerSimonian and Laird (1986): Q = sum w (x - mean of its group)^2 with w = 1 / error^2, less its
// value from the errors alone (a cell's share times df / (df - 2), because its error is an estimate
// itself), over sum w - sum w^2 / sum w. `without`: leaves out that cell, which is then judged by
// the others' spread. Absent where no group has two cells.
std::optional<Spread> spread_of(std::span<const CellRatio> cells,
                                std::optional<size_t> without = {});

// The error of a mean of `cells` cells with the spread between runs in it, taken for 1 + 1 / df
// times its estimate; degrees of freedom by Satterthwaite (1946).
stats::StandardError with_spread(const stats::StandardError& error,
                                 const std::optional<Spread>& spread, size_t cells);

}  // namespace assay
