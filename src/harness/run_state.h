// State that units leave for later ones; a resumed run reads it from the bundle.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "artifact/row.h"
#include "harness/cell_evidence.h"
#include "harness/decisions.h"
#include "harness/outcome.h"
#include "study/plan.h"

namespace assay {

// A cell in which this many measured repetitions failed in a row isn't tried again before its next
// round: every one may cost a process' start, or a timeout.
inline constexpr int64_t kTriesInARow = 3;

struct RunState {
  RunState(const Study& study, const Plan& plan) : evidence(study, plan) {
    if (stops_when_decided(study)) decisions.emplace(study, plan);
  }

  // True if a measured repetition was ok; warm-ups don't count.
  bool has_ok_rows(size_t cell) const { return cells_with_ok_rows.contains(cell); }
  // The worker's number among those that have served the cell; a new one has the next.
  int64_t process_of(size_t cell, int64_t serial);
  // Takes in a row, of this run or of the one that it continues; in order within a cell and round.
  void note(size_t cell, int64_t round, const Row& row);

  std::set<size_t> cells_with_ok_rows;
  std::map<std::pair<size_t, int64_t>, std::vector<double>> ok_latencies_ms;  // by cell and round
  // The latest measured repetitions of a cell in a round that failed in a row.
  struct FailedInARow {
    int64_t repetitions = 0;
    RowOutcome last;
  };
  std::map<std::pair<size_t, int64_t>, FailedInARow> failed_in_a_row;
  int64_t committed_rows = 0;  // the next row's order_index, not counting the present unit's rows
  // Repetitions that optional stopping has added so far, by cell: they shift the cell's later ones.
  std::map<size_t, int64_t> extra_repetitions;
  std::optional<Decisions> decisions;  // if stopping decides
  std::set<int64_t> dropped_units;     // of strata that were decided before
  struct Processes {
    int64_t count = 0;
    int64_t last_serial = -1;
  };
  std::map<size_t, Processes> processes;  // by cell
  CellEvidence evidence;
  std::set<size_t> cells_with_parity;  // those that have a parity.json
};

}  // namespace assay
