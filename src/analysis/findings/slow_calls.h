// An arm's slow calls, and what was recorded beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// A circumstance that slow calls have more often than others. Each call counts for the first that
// it has, in the order of kSlowCauses (analysis/describe/slow_calls.h).
struct SlowCause {
  std::string kind;
  int64_t slow = 0;    // slow calls that have it, and no earlier one
  int64_t others = 0;  // calls that have it and aren't slow
};

// The slow calls among one arm's warm rows on a stratum. "High" is p99, and the largest call where
// there are too few rows for that.
struct ArmSlowCalls {
  size_t stratum = 0;
  std::string arm;
  int64_t n = 0;
  double p50 = 0;
  double high = 0;
  bool high_is_max = false;
  double limit = 0;  // ms; calls above it are slow
  int64_t slow = 0;
  std::vector<SlowCause> causes = {};  // those that a slow call has
  // High of the rows without those slow calls that have a cause; absent where none has.
  std::optional<double> high_without = {};

  int64_t unexplained() const {
    int64_t rest = slow;
    for (const SlowCause& cause : causes) rest -= cause.slow;
    return rest;
  }
};

}  // namespace assay
