// Effect sizes of two samples whose values come in clusters: the calls of one worker process are
// alike, so that many of them tell little more of its sample than a few.
//
// The figures are those of the single values, as without clusters; their errors come from the
// differences between clusters.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/hypotheses/tests.h"
#include "stats/samples/intervals.h"
#include "stats/sequential/widening.h"

namespace assay::stats {

struct ClusteredSample {
  std::span<const double> values;
  // Number of each value's cluster, from 0. If two samples were taken together, clusters of one
  // number belong together, and a cluster may have values of one sample alone.
  std::span<const size_t> cluster;
};

// Vargha and Delaney's A (2000) of single values, P(a > b) + P(a = b) / 2, and Mann and Whitney's
// U. Its error is that of the clusters' sums of placements (Brunner and Munzel 2000, whose test
// this is where every value is a cluster of its own; Obuchowski 1997 for clusters, of which two
// samples may share some: `paired`). Interval and p are those of t on the scale of logits, so that
// they stay within 0 and 1: without it five clusters a side reject equal samples in 6 to 8 % of
// trials. Where no value of one sample lies among the other's there is no such error and no
// interval; p is then the chance that clusters dealt at random to the two samples (of pairs: turned
// round at random) would part so, two-sided. Absent if a sample is empty; p is absent for fewer
// than two clusters.
struct ClusteredRankTest {
  double u = 0;
  double a = 0.5;
  std::optional<Interval> a_interval;
  std::optional<double> p;
  std::optional<double> log_p;
  bool exact = false;  // p is a count of ways
};
std::optional<ClusteredRankTest> rank_clusters(const ClusteredSample& a, const ClusteredSample& b,
                                               bool paired, const Widening& widening,
                                               double confidence);
// The interval alone, for ascending samples whose values are each a cluster of its own.
std::optional<Interval> superiority_interval(std::span<const double> sorted_a,
                                             std::span<const double> sorted_b,
                                             const Widening& widening, double confidence);

// Variance of single values: that between clusters' means plus that within clusters, of both
// samples together, each about its own mean.
struct TotalVariance {
  double variance = 0;  // between and within
  double df = 0;        // of that variance, by Satterthwaite (1946)
};
// Estimated by analysis of variance; a negative variance between clusters counts as 0. Where every
// cluster has one value it is the pooled variance. Absent for fewer than two clusters a sample, or
// without variance.
std::optional<TotalVariance> total_variance(const ClusteredSample& a, const ClusteredSample& b);
// The same for samples whose values are each a cluster of its own.
std::optional<TotalVariance> total_variance(const Moments& a, const Moments& b);

// d = difference / sqrt(total variance): Hedges' d_T (2007), Cohen's d where clusters have one
// value each; g is d times hedges_correction(df). Their intervals: d -+ t quantile times
// sqrt(error^2 / variance + d^2 / (2 df)), with the difference's own error and degrees of freedom.
struct StandardizedDifference {
  double d = 0;
  std::optional<Interval> d_interval;
  std::optional<double> g;
  std::optional<Interval> g_interval;
};
StandardizedDifference standardized(double difference, const TotalVariance& total,
                                    const std::optional<StandardError>& error, double confidence);

}  // namespace assay::stats
