// The mean of a series of repetitions in the order in which they ran, with an error that knows that
// repetitions may depend on one another and that a machine may drift.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace assay {

struct SeriesMean {
  int64_t n = 0;
  double mean = 0;
  double sd = 0;
  double n_effective = 0;       // independent repetitions that would tell as much; at most n
  std::optional<double> drift;  // first row to last, in the series' unit; absent: no trend found
  double error2 = 0;            // variance of the mean, drift included
  double df = 0;
};

// error2 = sd^2 / n_effective + drift^2 / 4. A series that drifts has no one level, and its mean
// lies half the drift away from either end: what another run of the same program would have met.
// The drift counts where Mann-Kendall's p is below kDriftLevel (no claim, so a generous level).
// `series` in order; absent for n < 2 or one value repeated.
inline constexpr double kDriftLevel = 0.10;
std::optional<SeriesMean> series_mean(std::span<const double> series);

}  // namespace assay
