// Shares of clustered observations.
#include "stats/estimates/clustered_share.h"

#include <algorithm>
#include <cassert>

namespace assay::stats {

std::optional<double> design_effect(std::span<const ClusterCount> clusters) {
  int64_t successes = 0;
  int64_t n = 0;
  int64_t m = 0;
  for (const ClusterCount& cluster : clusters) {
    successes += cluster.successes;
    n += cluster.n;
    m += cluster.n > 0 ? 1 : 0;
  }
  if (m < 2 || successes == 0 || successes == n) return std::nullopt;
  const auto all = static_cast<double>(n);
  const auto count = static_cast<double>(m);
  const double p = static_cast<double>(successes) / all;
  double squares = 0;
  for (const ClusterCount& cluster : clusters) {
    const double error =
        static_cast<double>(cluster.successes) - p * static_cast<double>(cluster.n);
    squares += error * error;
  }
  const double effect = count / (count - 1) * squares / (all * p * (1 - p));
  return std::clamp(effect, 1.0, all / count);
}

std::optional<Interval> clustered_wilson_interval(int64_t successes, int64_t n, double effect,
                                                  double confidence) {
  assert(effect >= 1);
  return score_interval(static_cast<double>(successes) / effect, static_cast<double>(n) / effect,
                        confidence);
}

}  // namespace assay::stats
