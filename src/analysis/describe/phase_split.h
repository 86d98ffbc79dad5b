// Worth of an arm's prefill end to end, by the number of tokens decoded after it.
#pragma once

#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/findings/phase_split.h"
#include "analysis/rows/samples.h"

namespace assay {

// One split for each model, scenario, batch and arm with comparable prefill and kv_decode strata.
// The time of N tokens is prefill + N times the time a token of the longest decode length measured;
// the time a token may grow with N, so lengths beyond that one are an extrapolation and say so.
std::vector<PhaseSplit> split_phases(const Samples& samples, const Resampled& resampled,
                                     const std::vector<Contrast>& contrasts,
                                     const AnalysisOptions& options, ThreadPool* pool);

}  // namespace assay
