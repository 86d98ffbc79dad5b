// The sittings that measured a bundle: their rows, and the differences of their machines.
#pragma once

#include <vector>

#include "analysis/findings/sittings.h"
#include "artifact/bundle.h"
#include "base/records/json.h"

namespace assay {

// Every member that differs, except figures that differ at each start: load, free memory, steal,
// and the warnings about them. Members of arms and of lists of objects go by one name each.
std::vector<EnvironmentDifference> environment_differences(const Json& before, const Json& now);

// One a sitting, in order.
std::vector<SittingSummary> summarize_sittings(const Bundle& bundle);

}  // namespace assay
