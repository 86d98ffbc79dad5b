// Conditions that a policy's rows say nothing about.
#pragma once

#include <string>
#include <vector>

#include "analysis/rows/samples.h"

namespace assay {

// One sentence each: lengths outside and gaps in between, batches, new tokens and phases that
// weren't measured, arms that lack a stratum.
std::vector<std::string> unmeasured(const Samples& samples);

}  // namespace assay
