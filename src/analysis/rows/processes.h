// The worker processes of a cell, which a comparison of two bundles takes for independent.
//
// The state that a process gets when it starts (where its memory lies, which pages are huge) makes
// it faster or slower than the next one for as long as it lives: its repetitions share that, so
// rows of one process can't show it, however many they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/rows/samples.h"

namespace assay {

// The number of the row's process within its cell. Bundles of schema version 2 and older, which
// don't tell processes apart, count as of one.
int64_t process_of(const Row& row);

// True if the group has warm rows of two processes or more.
bool several_processes(const Group& group);

// True if the group's warm rows name their process, and it is one.
bool is_of_one_process(const Group& group);

// Figure of a process' warm latencies.
enum class ProcessFigure {
  kMean,
  kMedian,  // its typical call, which a few slow ones don't touch
};

// Pieces of fixed work that a worker may time behind each call: lookups, multiplies.
inline constexpr size_t kYardsticks = 2;

// That of each process of a cell, in the order in which they served it.
struct ProcessFigures {
  std::vector<int64_t> numbers;
  std::vector<double> values_ms;
  // Medians of ln(us) over each process' warm rows; empty where a row of any has none.
  std::vector<std::array<double, kYardsticks>> log_yardsticks;
  size_t size() const { return numbers.size(); }
};
ProcessFigures process_figures(const Group& group, ProcessFigure figure);

}  // namespace assay
