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
// Of a ratio, as shares by which it differs from 1.
TableCell share_interval(const std::optional<stats::Interval>& interval);

}  // namespace assay
