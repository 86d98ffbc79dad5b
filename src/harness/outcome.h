// Outcomes of repetitions that a worker failed; artifact/row_rule.h judges those that it answered.
#pragma once

#include <string>

#include "artifact/row.h"
#include "backend/worker_client.h"

namespace assay {

struct RowOutcome {
  RowStatus status = RowStatus::kOk;
  std::string error_class;  // empty if ok

  friend bool operator==(const RowOutcome&, const RowOutcome&) = default;
};

// kInterrupted has no outcome for a row: asserts.
RowOutcome outcome_of(const WorkerFailure& failure);

}  // namespace assay
