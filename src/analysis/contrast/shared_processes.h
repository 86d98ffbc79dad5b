// The spread between worker processes of an arm, learnt from all strata of a phase at once.
//
// Few processes tell little of their spread on one stratum; those of the phase's other strata
// spread alike (stats/estimates/shared_spread.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/contrast/units.h"
#include "stats/sequential/widening.h"

namespace assay {

// The change that all strata make to an error of the stratum's own processes.
struct SharedSpread {
  stats::Widening own{};  // factors on that error and its degrees of freedom; neither is below 1
  std::optional<double>
      df{};  // absent: the spread is the stratum's own, or processes aren't its unit
  // An arm has two processes, and on some stratum of the phase the processes stand out. Two that
  // agree here may do so by chance, and a test by their own spread shows nothing.
  bool unsure = false;
};

// Spreads of each pair's ratio: of the differences x / mean - y / mean' of rounds where the arms
// are paired, else each arm's processes. A family is all strata of a phase that have both arms,
// whichever pairs are asked for.
std::vector<SharedSpread> spreads_of_pairs(const Samples& samples, const Units& units,
                                           std::span<const GroupPair> pairs);

// Spreads of the mean of each of the samples' groups, in their order. A family is an arm in one
// phase.
std::vector<SharedSpread> spreads_of_groups(const Samples& samples, const Units& units);

// Both widenings of one error.
stats::Widening both(const stats::Widening& one, const stats::Widening& other);

}  // namespace assay
