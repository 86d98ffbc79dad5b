// What became of a repetition that a worker failed; of one that it answered artifact/row_rule.h
// judges.
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

// kInterrupted is none of a row's business: asserts.
RowOutcome outcome_of(const WorkerFailure& failure);

}  // namespace assay
