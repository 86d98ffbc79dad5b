// Reads workers' reports beside the timings.
#pragma once

#include <vector>

#include "analysis/findings/worker_facts.h"
#include "analysis/rows/samples.h"

namespace assay {

// The facts by stratum, then arm. Read leniently: members that aren't there are absent.
std::vector<CompileCost> compile_costs(const Samples& samples);
std::vector<CellProfile> cell_profiles(const Samples& samples);

}  // namespace assay
