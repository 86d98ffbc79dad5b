// Table cells that every table of a comparison has.
#pragma once

#include <optional>
#include <string>

#include "analysis/compare/compare.h"
#include "base/tables/table.h"

namespace assay {

// "faster", "SLOWER" (an alarm), "slower (no alarm)", "not decided", ...
std::string status_text(const ComparedCell& cell);
TableCell signed_percent(double share);
// The change of the typical call, beside that of the mean.
TableCell typical_cell(const ComparedCell& cell);
TableCell mean_cell(const std::optional<ComparedSide>& side);
// A ratio's spread as shares by which it differs from 1: the interval, "[+1.20, +3.40] %", or
// "range +1.20 to +3.40 %" if processes or runs are too few for one.
TableCell share_spread(const std::optional<stats::Interval>& interval,
                       const std::optional<stats::Interval>& range);
std::string share_spread_text(const std::optional<stats::Interval>& interval,
                              const std::optional<stats::Interval>& range);

}  // namespace assay
