// The row's outcome for each failure.
#include "harness/outcome.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(OutcomeOf, KeepsTheClass) {
  EXPECT_EQ(outcome_of({FailureKind::kCrash, "SIGSEGV", ""}),
            (RowOutcome{RowStatus::kCrash, "SIGSEGV"}));
  EXPECT_EQ(outcome_of({FailureKind::kOutOfMemory, "std::bad_alloc", ""}).status, RowStatus::kOom);
  EXPECT_EQ(outcome_of({FailureKind::kTimeout, "timeout", ""}).status, RowStatus::kTimeout);
  EXPECT_EQ(outcome_of({FailureKind::kError, "E", ""}).status, RowStatus::kError);
}

}  // namespace
}  // namespace assay
