// The sittings that measured a bundle: which rows are whose, and what was another machine's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/bundle.h"
#include "base/json.h"

namespace assay {

struct EnvironmentDifference {
  std::string field;   // "gpus.uuid", "host.system.kernel", "arms.interpreter.torch"
  std::string before;  // several values joined; empty: not recorded
  std::string now;
  friend bool operator==(const EnvironmentDifference&, const EnvironmentDifference&) = default;
};

// Every member that differs, but what is another figure at each start: load, free memory, steal,
// and the warnings about them. Members of arms and of lists of objects go by one name each.
std::vector<EnvironmentDifference> environment_differences(const Json& before, const Json& now);

struct SittingSummary {
  std::string started_at;
  int64_t first_row = 0;  // its place in the order of the run
  int64_t rows = 0;
  std::vector<EnvironmentDifference> differs;  // from the first sitting
};

// One a sitting, in order.
std::vector<SittingSummary> summarize_sittings(const Bundle& bundle);
Json sittings_json(const std::vector<SittingSummary>& sittings);

// "rows 310..341", "no rows".
std::string sitting_rows(const SittingSummary& sitting);
// "gpus.uuid (GPU-1, then GPU-2), libraries.sha256 and 3 more": values where they are short. Empty:
// there are none.
std::string difference_text(const std::vector<EnvironmentDifference>& differences, size_t most,
                            bool with_values);

}  // namespace assay
