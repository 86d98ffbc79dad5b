// Table cells that every table of a comparison has.
#pragma once

#include <optional>
#include <string>

#include "analysis/compare/compare.h"
#include "base/table.h"

namespace assay {

// "faster", "SLOWER" (an alarm), "slower (no alarm)", "not decided", ...
std::string status_text(const ComparedCell& cell);
TableCell signed_percent(double share);
// By the typical call instead of the mean.
TableCell typical_cell(const ComparedCell& cell);
TableCell mean_cell(const std::optional<ComparedSide>& side);
// Of a ratio, as shares by which it differs from 1: "[+1.20, +3.40] %", or "range +1.20 to +3.40 %"
// of processes or runs that are too few for an interval.
TableCell share_spread(const std::optional<stats::Interval>& interval,
                       const std::optional<stats::Interval>& range);
std::string share_spread_text(const std::optional<stats::Interval>& interval,
                              const std::optional<stats::Interval>& range);

}  // namespace assay
