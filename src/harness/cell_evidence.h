// evidence.json of each cell while a run goes on: an earlier unit's report stays when a later one's
// worker is lost, and one process's proof doesn't hide that another one had none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "artifact/bundle.h"
#include "backend/backend.h"
#include "harness/outcome.h"
#include "harness/workers.h"
#include "study/plan.h"

namespace assay {

class CellEvidence {
 public:
  CellEvidence(const Study& study, const Plan& plan) : study_(study), plan_(plan) {}

  // Takes over the evidence that an earlier run left.
  void restore(size_t cell, Evidence evidence) { by_cell_[cell] = std::move(evidence); }
  // The cell's evidence, made when first asked for.
  Evidence& of(size_t cell);
  // Takes the readiness of an arm that isn't ready; kept in every cell of it.
  void set_readiness(size_t arm, const ArmReadiness& readiness);
  // The worker as its hello, its load and its preparation for this cell have it: known before
  // anything runs. Without that preparation, its members are null.
  void add_worker(size_t cell, const LiveWorker& worker);
  // The same in the list of the cell's processes, under the worker's number there.
  void add_process(size_t cell, int64_t process, const LiveWorker& worker);
  // Notes the kernel's present placement of the process; if it is gone, the earlier one stays.
  void add_placement(size_t cell, int64_t process, int64_t pid);
  // Asks the worker, which may fail. The answer is the cell's unless another process showed less:
  // of the processes that weren't lost the weakest verdict counts, of equals the latest. The last
  // report of a worker that is lost counts if no process has come through. Returns the whole
  // answer.
  ClientResult<Json> add_report(size_t cell, int64_t process, WorkerClient& client, Phase phase,
                                double timeout_s, bool last_words);
  void add_failure(size_t cell, int64_t unit, int64_t repetition, const RowOutcome& outcome,
                   const std::string& message);
  Status write(size_t cell, BundleWriter& bundle);
  // Moves a worker's output to the end of the cell's log, as far as there is room; the rest is
  // counted, and the evidence written.
  Status keep_log(size_t cell, WorkerLog& log, BundleWriter& bundle);

 private:
  // Made when first asked for; numbers count up.
  EvidenceProcess& process_of(size_t cell, int64_t process);

  const Study& study_;
  const Plan& plan_;
  std::map<size_t, Evidence> by_cell_;
  std::map<size_t, EvidenceGate> readiness_;  // by arm
  std::map<size_t, uint64_t> log_bytes_;      // kept in this sitting, by cell
};

}  // namespace assay
