// Description of groups: what became of the attempts, and the latencies of those that count.
#pragma once

#include <vector>

#include "analysis/dependence.h"
#include "analysis/samples.h"
#include "stats/bootstrap.h"

namespace assay {

// By phase and arm first, then by stratum and arm.
std::vector<OutcomeCounts> describe_outcomes(const Samples& samples,
                                             const AnalysisOptions& options);

// One resampled mean a group, in the groups' order; absent where the group is too small. Resamples
// of a constant one are that constant: it has no interval of its own, and ratios have. Another arm
// in the study changes no other arm's interval.
std::vector<std::optional<stats::ResampledMean>> resample_groups(const Samples& samples,
                                                                 const AnalysisOptions& options,
                                                                 ThreadPool* pool);

// The random stream of a group: of its stratum and arm by name.
uint64_t stream_of(const Samples& samples, const Group& group);

// In the groups' order.
std::vector<Latency> describe_latencies(
    const Samples& samples, const std::vector<std::optional<stats::ResampledMean>>& resampled,
    const std::vector<Dependence>& dependence, const AnalysisOptions& options, ThreadPool* pool);

// BCa for means; percentile for ratios, where BCa covers too little when one of two samples holds
// the rare slow calls (docs/statistics.md).
stats::BootstrapOptions mean_bootstrap(const AnalysisOptions& options);
stats::BootstrapOptions ratio_bootstrap(const AnalysisOptions& options);

}  // namespace assay
