// The worker processes of a cell: what a comparison of two bundles takes for independent.
//
// What a process was given when it started (where its memory lies, which pages are huge) makes it
// faster or slower than the next one for as long as it lives: its repetitions share that, so rows
// of one process can't show it, however many they are.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/samples.h"

namespace assay {

// The number of the row's process within its cell. Bundles of schema version 2 and older, which
// don't tell processes apart, count as of one.
int64_t process_of(const Row& row);

// Whether warm rows of two processes or more are there.
bool several_processes(const Group& group);

// Means of the warm latencies of each process of a cell, in the order in which they served it.
struct ProcessMeans {
  std::vector<int64_t> numbers;
  std::vector<double> means_ms;
  size_t size() const { return numbers.size(); }
};
ProcessMeans process_means(const Group& group);

}  // namespace assay
