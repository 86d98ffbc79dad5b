// A proportion whose observations come in clusters, such as rows of a process that share its fate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stats/samples/intervals.h"

namespace assay::stats {

// Observations of one cluster. 0 <= successes <= n.
struct ClusterCount {
  int64_t successes = 0;
  int64_t n = 0;
};

// Design effect: the variance of the share p over that of as many independent observations, by the
// ratio estimator over m clusters
//   v = m / (m - 1) sum (y_i - p n_i)^2 / n^2,   design effect = v / (p (1 - p) / n)
// (Kish 1965; Rao and Scott 1992, "A simple method for the analysis of clustered binary data"),
// within 1 and n / m: never narrower than independent observations, never wider than one
// observation a cluster. Clusters without observations don't count. Absent for fewer than two
// clusters, and for p = 0 or 1, where nothing shows it.
std::optional<double> design_effect(std::span<const ClusterCount> clusters);

// Wilson's interval with the effective numbers successes / effect of n / effect (as Korn and
// Graubard 1998 do for Clopper and Pearson's). Equal to wilson_interval() for an effect of 1.
// effect >= 1; absent as there.
std::optional<Interval> clustered_wilson_interval(int64_t successes, int64_t n, double effect,
                                                  double confidence = 0.95);

}  // namespace assay::stats
