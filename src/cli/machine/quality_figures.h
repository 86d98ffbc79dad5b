// Figures of a model's quality beside a reference, with intervals.
#pragma once

#include <cstdint>
#include <vector>

#include "artifact/quality.h"
#include "engine/session/logits_error.h"

namespace assay::cli {

inline constexpr int kResamples = 2000;

// Figures of windows of one length, at least one; values that aren't finite are an error of the
// caller. Means have Student's intervals over the windows' means. That of kl_p99 is by windows
// drawn with replacement (percentiles of kResamples). That of same_choice is at least Wilson's of
// all positions, which also holds where no position differs. Paths and text are left to the caller.
ModelQuality quality_figures(const std::vector<std::vector<engine::PositionError>>& windows,
                             uint64_t seed);

}  // namespace assay::cli
