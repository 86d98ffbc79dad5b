// Optional stopping: decides if a cell's interval is narrow enough.
#pragma once

#include <optional>
#include <span>

#include "study/study.h"

namespace assay {

// Half the width of the 95 % t interval of the mean, as a share of the mean. Absent for fewer than
// two samples and for a mean that isn't positive.
std::optional<double> relative_interval(std::span<const double> latencies);

// True if a cell with these ok latencies and `repetitions` done (ok or not) goes on. A cell whose
// interval can't be computed doesn't: more of the same would not help it.
bool wants_more(const Stopping& stopping, std::span<const double> latencies, int64_t repetitions);

}  // namespace assay
