// The mean of a series of repetitions in the order in which they ran, with an error that knows that
// repetitions may depend on one another and that a machine may drift.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/hypotheses/tests.h"

namespace assay {

struct SeriesMean {
  int64_t n = 0;
  double mean = 0;
  double sd = 0;
  double n_effective = 0;       // independent repetitions that would tell as much; at most n
  std::optional<double> drift;  // first row to last, in the series' unit; absent: no trend found
  stats::StandardError error;
};

// The error is (widening sd)^2 / n + drift^2 / 4. A series that drifts has no one level, and its
// mean lies half the drift away from either end, where another run of the same program may lie.
// Dependence and drift count where the family shows them. dependences() says how for the first; the
// drift of a series counts where its Mann-Kendall p is below 5 %, after Holm unless the family's p
// together (Fisher 1925) are below 2.5 %.
//
// `family`: series in order. Absent for n < 2 or one value repeated.
std::vector<std::optional<SeriesMean>> series_means(std::span<const std::vector<double>> family);

}  // namespace assay
