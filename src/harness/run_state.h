// What units leave behind for later ones; a resumed run takes it from the bundle.
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

// A cell of which this many measured repetitions failed one after the other isn't tried again
// before its next round: every one may cost a process' start, or a timeout.
inline constexpr int64_t kTriesInARow = 3;

struct RunState {
  RunState(const Study& study, const Plan& plan) : evidence(study, plan) {
    if (stops_when_decided(study)) decisions.emplace(study, plan);
  }

  // Of measured repetitions alone.
  bool has_ok_rows(size_t cell) const { return cells_with_ok_rows.contains(cell); }
  // The worker's number among those that have served the cell; a new one has the next.
  int64_t process_of(size_t cell, int64_t serial);
  // Takes in a row, of this run or of one that it goes on from; of a cell and round in their order.
  void note(size_t cell, int64_t round, const Row& row);

  std::set<size_t> cells_with_ok_rows;
  std::map<std::pair<size_t, int64_t>, std::vector<double>> ok_latencies_ms;  // by cell and round
  // The latest measured repetitions of a cell in a round, as many as failed one after the other.
  struct FailedInARow {
    int64_t repetitions = 0;
    RowOutcome last;
  };
  std::map<std::pair<size_t, int64_t>, FailedInARow> failed_in_a_row;
  int64_t committed_rows = 0;  // the next row's order_index, but for those of the unit under way
  // Of optional stopping so far: they shift the repetitions of their own cell behind them.
  std::map<size_t, int64_t> extra_repetitions;
  std::optional<Decisions> decisions;  // where stopping decides
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
