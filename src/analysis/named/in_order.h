// A group's rows in the order of the run, by worker process, and the levels of rounds of processes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/rows/samples.h"

namespace assay {

using RowsInOrder = std::vector<const Row*>;

// Rows cut where another process takes over: each has its own start and its own level.
std::vector<RowsInOrder> by_process(const RowsInOrder& rows);

// The warm rows of a group but for those that compiled something, which have findings of their own:
// a churning arm's recompiles come first, and are no drift of the machine.
RowsInOrder uncompiled(const Group& group);

// The level of the machine round by round: the processes of all cells that serve together share it,
// whatever each of them is like by itself.
struct RoundLevels {
  std::vector<double> logs;  // trimmed mean over cells of ln(process' median / the cell's level)
  // Rows by round, of each cell that counts.
  std::vector<std::vector<RowsInOrder>> cells;
};

// The cells that count are those with several processes that have the most frequent number of them;
// the r-th process of each is of round r. Absent for fewer than four rounds.
std::optional<RoundLevels> round_levels(const Samples& samples, Phase phase);

}  // namespace assay
