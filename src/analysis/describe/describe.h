// Description of groups: outcomes of the attempts, and latencies of those that count.
#pragma once

#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/findings/latency.h"
#include "analysis/findings/outcomes.h"
#include "analysis/rows/samples.h"

namespace assay {

// The outcomes by phase and arm first, then by stratum and arm.
std::vector<OutcomeCounts> describe_outcomes(const Samples& samples);

// The latencies in the groups' order.
std::vector<Latency> describe_latencies(const ContrastInputs& in, ThreadPool* pool);

}  // namespace assay
