// Kinds of failure to statuses of rows.
#include "harness/outcome.h"

#include <cassert>

namespace assay {

RowOutcome outcome_of(const WorkerFailure& failure) {
  switch (failure.kind) {
    case FailureKind::kError:
      return {RowStatus::kError, failure.error_class};
    case FailureKind::kCrash:
      return {RowStatus::kCrash, failure.error_class};
    case FailureKind::kTimeout:
      return {RowStatus::kTimeout, failure.error_class};
    case FailureKind::kOutOfMemory:
      return {RowStatus::kOom, failure.error_class};
    case FailureKind::kFalseSuccess:
      return {RowStatus::kFalseSuccess, failure.error_class};
    case FailureKind::kInterrupted:
      break;
  }
  assert(false && "an interrupted repetition makes no row");
  return {RowStatus::kError, failure.error_class};
}

}  // namespace assay
