// Dependence of neighbouring repetitions, learnt from all series of a family.
//
// Thirty rows hardly show an autocorrelation of 0.3, and chance shows one in every sixth white
// series: whoever judges each series on its own widens where nothing is and doesn't where something
// is. The machine, which makes neighbours alike, is common to a run, so its cells are judged
// together.
#pragma once

#include <span>
#include <vector>

#include "stats/sequential/widening.h"

namespace assay {

// Dependence within one series.
struct Dependence {
  double r = 0;          // the lag-1 autocorrelation that counts; 0: none shows
  double r_error = 0;    // its standard error
  double inflation = 1;  // of the mean's variance: n / inflation independent values tell as much
  stats::Widening widening;  // of the mean's standard error: stats::first_order_widening()
};

// Evidence that a family needs to count as dependent.
struct DependenceRule {
  double level = 0.025;  // one-sided, of the family's mean r and of a series' own
  double errors = 0;     // standard errors above its estimate at which an r counts
};

// Each r is Kendall's; their mean over the family weighs by precision. Where that lies above 0
// at the rule's level, each series counts with its own r shrunk towards the mean, by how much the
// family varies beyond chance (DerSimonian and Laird 1986); series of fewer than 6 values have the
// mean. Where it doesn't, those alone count whose own r is above 0 at that level after Holm. The
// levels are those of series that have nothing in common; where they have, white ones count more
// often. A series of one value repeated is independent.
std::vector<Dependence> dependences(std::span<const std::vector<double>> family,
                                    const DependenceRule& rule = {});

// A series of worker processes, one part each: what ends with a process isn't taken for dependence.
using SeriesInParts = std::vector<std::vector<double>>;

// Inflation of the mean of each series by what lies within its parts. r of a series is the mean of
// its parts', by precision; otherwise as dependences().
std::vector<double> inflations_within_parts(std::span<const SeriesInParts> family);

// From here on autocorrelations beyond the first lag can be told from noise.
inline constexpr size_t kLongSeries = 100;

// r, 0 .. stats::kMostAlike; from kLongSeries values on, where it is larger, the r of the
// first-order series that has Geyer's effective size: of the means of 500 blocks where the series
// is longer, so that it costs O(n).
double counted_r(std::span<const double> series, double r);

}  // namespace assay
