// Thins a bundle's rows to those that a plot shows apart.
#pragma once

#include "analysis/findings/plotted.h"
#include "analysis/rows/samples.h"

namespace assay {

// At most some hundred rows of each group: all marked ones as far as they have room, and of the
// others the fastest and the slowest of each stretch of its order. Groups with fewer rows than that
// keep all of them.
std::vector<PlottedGroup> plotted_groups(const Samples& samples);

}  // namespace assay
