// Means of groups, resampled: what intervals of means and of their ratios are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/contrast/units.h"
#include "analysis/findings/options.h"
#include "analysis/rows/samples.h"
#include "base/thread_pool.h"
#include "stats/bootstrap.h"

namespace assay {

using Resampled = std::vector<std::optional<stats::ResampledMean>>;  // in the groups' order

// One resampled mean of units a group, in the groups' order; absent where the group is too small.
// What belongs together is resampled together: paired arms of a stratum, and where processes are
// the unit all strata of a model, which they served. Resamples of a constant group are that
// constant: it has no interval of its own, and ratios have. Another arm in the study changes no
// other arm's interval.
Resampled resample_groups(const Samples& samples, const Units& units,
                          const AnalysisOptions& options, ThreadPool* pool);

// The same of one group's units, of which some were left out of a pair.
std::optional<stats::ResampledMean> resample_units(const Samples& samples, const Units& units,
                                                   const Group& group,
                                                   std::span<const double> values,
                                                   const AnalysisOptions& options);

// The random stream of a group's rows: of its stratum and arm by name.
uint64_t stream_of(const Samples& samples, const Group& group);

// BCa for means; percentile for ratios, where BCa covers too little when one of two samples holds
// the rare slow calls (docs/statistics.md).
stats::BootstrapOptions mean_bootstrap(const AnalysisOptions& options);
stats::BootstrapOptions ratio_bootstrap(const AnalysisOptions& options);

}  // namespace assay
