// Counting and picking out values by size: quantiles of many replicates rest on it.
#pragma once

#include <cstddef>
#include <span>

namespace assay::stats {

// Elements that keep_between may write beyond those it keeps.
inline constexpr size_t kKeepSlack = 8;

// Writes the values in [low, high] to `kept` (room for all of them and kKeepSlack more), in their
// order, and counts those below `low`.
struct KeptCounts {
  size_t below = 0;
  size_t kept = 0;
};
KeptCounts keep_between(std::span<const double> values, double low, double high, double* kept);

// Twice the values below x plus those equal to it.
size_t count_below_in_halves(std::span<const double> values, double x);

}  // namespace assay::stats
