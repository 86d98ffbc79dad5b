// Rows that were measured beside another program on their GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"

namespace assay {

// A program that computes for no more of the GPU's time than this only holds memory: its own
// bookkeeping.
inline constexpr double kLeastGpuShare = 0.01;

// One program beside some of a group's warm rows.
struct RowsBeside {
  int64_t pid = 0;
  std::string process;  // empty: unknown
  std::optional<uint64_t> memory_bytes;
  double share = 0;  // of the GPU's time, in the mean over these rows
  std::vector<const Row*> rows;
  bool computed() const { return share > kLeastGpuShare; }
};

// The programs that the group's evidence names, the one of the largest share first.
std::vector<RowsBeside> rows_beside(const Group& group);

// True if a program computed on the GPU beside some of the group's warm rows.
bool shared_gpu(const Group& group);

}  // namespace assay
