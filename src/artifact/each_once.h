// Refuses a bundle that a command was given twice, by its folder or by its rows.
// A bundle that counts twice would look like a second measurement that agrees with
// the first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/bundle.h"
#include "base/result.h"

namespace assay {

// bad_input that begins with `command` and names the folder: two of the paths are of one folder, by
// their texts or through links.
Status check_each_once(std::string_view command, std::span<const std::string> folders);

// Facts by which a run is recognised in a copy of its bundle, whatever has become of the copy's
// folder, seal, study, identity or start.
struct RunMark {
  std::string folder;
  std::string plan;           // its hash; empty: the bundle has none
  int64_t started_at_ns = 0;  // of the run; 0: not known
  // Hashes of a row's time and start, one for each row that has both, in ascending order. No row
  // of another run has the same hash.
  std::vector<uint64_t> rows = {};
  // SHA-256 of shapes and times of all rows in their order, and of when they started, counted from
  // the first. Empty: the rows have no starts, and too few different times to be known by them.
  std::string digest = {};
};
RunMark run_mark(const Bundle& bundle);

// bad_input that begins with `command` and names both folders: two of the marks are of one run,
// since they have a row in common, or all times, or plan and start.
Status check_distinct_runs(std::string_view command, std::span<const RunMark> marks);

}  // namespace assay
