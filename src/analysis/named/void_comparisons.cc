// Reasons why comparisons of a stratum's arms are void.
#include "analysis/named/void_comparisons.h"

#include <algorithm>

#include "analysis/describe/load.h"
#include "analysis/named/named.h"
#include "analysis/rows/gpu_neighbours.h"
#include "base/text/text.h"

namespace assay {

std::vector<std::string> void_comparisons(const Bundle& bundle, const StudySummary& study,
                                          const Samples& samples) {
  std::vector<std::string> reasons(samples.strata.size());
  if (study.order == "sequential" && samples.arms.size() > 1) {
    std::ranges::fill(reasons,
                      "the arms ran one after the other (order_confounded), so a drift of the "
                      "machine looks like a difference between them");
    return reasons;
  }
  if (samples.arms.size() > 1) {
    for (const LoadFigures& point : describe_load(bundle, samples).points) {
      if (point.growing_runs == 0 && point.failed.empty()) continue;
      reasons[point.stratum] = fmt::format(
          "{} has {} there, so that the latencies of what it served can't be held against "
          "another's",
          point.arm,
          point.failed.empty() ? "a queue that grows (queue_grows)"
                               : "requests that failed (requests_failed)");
    }
  }
  const std::vector<bool> mixed = mixed_sittings(bundle, samples);
  if (study.order != "interleaved" && samples.arms.size() > 1) {
    for (const Group& group : samples.groups) {
      if (!shared_gpu(group)) continue;
      reasons[group.stratum] =
          "another program computed on the GPU (gpu_shared) and the arms weren't interleaved, so "
          "what it took from one looks like a difference between them";
    }
  }
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (mixed[i]) {
      reasons[i] =
          "the arms were measured in sittings whose environments differ (several_sittings), and "
          "that difference looks like one between the arms";
    }
  }
  return reasons;
}

}  // namespace assay
