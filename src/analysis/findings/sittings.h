// The sittings that measured a bundle, and the differences between their environments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

struct EnvironmentDifference {
  std::string field;   // "gpus.uuid", "host.system.kernel", "arms.interpreter.torch"
  std::string before;  // several values joined; empty: not recorded
  std::string now;
  friend bool operator==(const EnvironmentDifference&, const EnvironmentDifference&) = default;
};

struct SittingSummary {
  std::string started_at;
  int64_t first_row = 0;  // its place in the order of the run
  int64_t rows = 0;
  std::vector<EnvironmentDifference> differs;  // from the first sitting
};

// "rows 310..341", "no rows".
std::string sitting_rows(const SittingSummary& sitting);
// "gpus.uuid (GPU-1, then GPU-2), libraries.sha256 and 3 more": values where they are short. Empty:
// there are none.
std::string difference_text(const std::vector<EnvironmentDifference>& differences, size_t most,
                            bool with_values);

}  // namespace assay
