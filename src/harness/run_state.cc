// Rows as later units see them.
#include "harness/run_state.h"

namespace assay {

int64_t RunState::process_of(size_t cell, int64_t serial) {
  Processes& known = processes[cell];
  if (known.last_serial != serial) {
    known.last_serial = serial;
    ++known.count;
  }
  return known.count - 1;
}

void RunState::note(size_t cell, int64_t round, const Row& row) {
  if (decisions) decisions->add(cell, round, row);
  if (row.repetition < 0) return;
  FailedInARow& failed = failed_in_a_row[{cell, round}];
  // A false success came from a worker that answers: trying again costs no more than the others.
  const bool answered = row.status == RowStatus::kOk || row.status == RowStatus::kFalseSuccess;
  failed.repetitions = answered ? 0 : failed.repetitions + 1;
  failed.last = {row.status, row.error_class};
  if (row.status != RowStatus::kOk || !row.latency_ms) return;
  cells_with_ok_rows.insert(cell);
  ok_latencies_ms[{cell, round}].push_back(*row.latency_ms);
}

}  // namespace assay
