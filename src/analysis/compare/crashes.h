// Rows and processes that the two sides of a comparison lost.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/parts.h"

namespace assay {

// Crash rates by phase and arm, then by stratum and arm, each a family of those where any row was
// lost, Holm-adjusted and judged at half of alpha. A cell that one bundle lacks is left out.
std::vector<ComparedCrashes> compare_crashes(const std::vector<Stratum>& strata,
                                             const std::vector<CellPair>& pairs,
                                             const CompareOptions& options);

// Factor on the pair's ratio of means where the rows that the candidate lost beyond the base's
// share had taken as long as its fastest and as its slowest warm row; rows that went with their
// process, as long as the mean of its fastest and of its slowest process. Absent: it lost no larger
// share.
std::optional<stats::Interval> bounds_of_lost(const CellPair& pair);
// Those of several cells together: geometric means, of a cell without bounds 1.
std::optional<stats::Interval> combined_bounds(
    std::span<const std::optional<stats::Interval>> cells);

}  // namespace assay
