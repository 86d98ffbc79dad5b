// Means of groups, resampled, for the intervals of means and of their ratios.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/contrast/units.h"
#include "analysis/findings/options.h"
#include "analysis/rows/samples.h"
#include "base/process/thread_pool.h"
#include "stats/resamples/bootstrap.h"

namespace assay {

using Resampled = std::vector<std::optional<stats::ResampledMean>>;  // in the groups' order

// One resampled mean of units a group, in the groups' order; absent where the group is too small.
// Groups that belong together are resampled together: paired arms of a stratum, and where processes
// are the unit all strata of a model, which they served. Resamples of a constant group are that
// constant: it has no interval of its own, and ratios have. Another arm in the study changes no
// other arm's interval.
Resampled resample_groups(const Samples& samples, const Units& units,
                          const AnalysisOptions& options, ThreadPool* pool);

// Both groups of each of these pairs, resampled: as `groups` has them, or without the units that
// one of a pair lacks. All at once, because drawing costs most, and samples of one size share it.
class PairResamples {
 public:
  // `groups`: of resample_groups(); it outlives this. `pool` may be null.
  PairResamples(const Samples& samples, const Units& units, const Resampled& groups,
                std::span<const GroupPair> pairs, const AnalysisOptions& options, ThreadPool* pool);

  // The resampled side of one of the pairs; absent where the group is too small.
  const std::optional<stats::ResampledMean>& arm(const GroupPair& pair) const;
  const std::optional<stats::ResampledMean>& baseline(const GroupPair& pair) const;

 private:
  using Sides = std::array<std::optional<stats::ResampledMean>, 2>;
  const Sides* find(const GroupPair& pair) const;  // null: whole

  const Resampled& groups_;
  std::map<std::pair<size_t, size_t>, Sides> pairs_;  // those that aren't whole
};

// The random stream of a group's rows: of its stratum and arm by name.
uint64_t stream_of(const Samples& samples, const Group& group);

// BCa for means; percentile for ratios, where BCa covers too little when one of two samples holds
// the rare slow calls (docs/calibration.md, "Few values").
stats::BootstrapOptions mean_bootstrap(const AnalysisOptions& options);
stats::BootstrapOptions ratio_bootstrap(const AnalysisOptions& options);

}  // namespace assay
