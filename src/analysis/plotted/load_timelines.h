// Runs under load over their time, as a figure shows them.
#pragma once

#include <vector>

#include "analysis/findings/plotted.h"
#include "analysis/rows/samples.h"

namespace assay {

// The first run that has requests of each arm at each point, by stratum, then arm.
std::vector<LoadTimeline> load_timelines(const Bundle& bundle, const Samples& samples);

}  // namespace assay
