// How far neighbouring repetitions depend on one another, learnt from all series of a family.
//
// Thirty rows hardly show an autocorrelation of 0.3, and chance shows one in every sixth white
// series: whoever judges each series on its own widens where nothing is and doesn't where something
// is. What makes neighbours alike, the machine, is common to a run, so its cells are judged
// together.
#pragma once

#include <span>
#include <vector>

#include "analysis/samples.h"

namespace assay {

// What one series tells.
struct Dependence {
  double r = 0;            // the lag-1 autocorrelation that counts, 0 .. 0.97; 0: none shows
  double n_effective = 0;  // independent values that would tell as much of the mean; 2 .. n
  double widening = 1;     // of the mean's standard error: sqrt(n / n_effective)
};

// Each r is Kendall's; their mean over the family weighs by precision. Where that lies above 0
// at 2.5 % (one-sided), each series counts with its own r shrunk towards the mean, by how much the
// family varies beyond chance (DerSimonian and Laird 1986); series of fewer than 6 values have the
// mean. Where it doesn't, those alone count whose own r is above 0 at 2.5 % after Holm. The levels
// are those of series that have nothing in common; where they have, white ones count more often. A
// series of one value repeated is independent.
std::vector<Dependence> dependences(std::span<const std::vector<double>> family);

// n (1 - r) / (1 + r), at least 2, at most n; from 100 values on Geyer's effective size where that
// is smaller: of the means of 500 blocks where the series is longer, so that it costs O(n).
double effective_size(std::span<const double> series, double r);

// Of the warm latencies of a bundle's groups, in their order; a family is a phase. Rows that
// compiled something are left out: they come first for a reason, and aren't the machine's doing.
std::vector<Dependence> group_dependences(const Samples& samples);

// By how much the standard error of each pair's ratio of means is wider than that of independent
// rows: the widening of the series of differences x / mean - y / mean', row by row of the same
// repetition, in which what the machine did to both arms alike cancels as it does in the ratio.
// Families are phases; indexes of groups; 1 for the pair of a group with itself.
struct GroupPair {
  size_t arm = 0;
  size_t baseline = 0;
};
std::vector<double> contrast_widenings(const Samples& samples, std::span<const GroupPair> pairs);

}  // namespace assay
