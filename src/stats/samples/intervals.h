// Intervals, and that of a proportion.
#pragma once

#include <cstdint>
#include <optional>

namespace assay::stats {

struct Interval {
  double low = 0;
  double high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The interval stretched about an estimate by `factor`, as its standard error grows: on the scale
// of logarithms, so that it stays positive. All three positive.
Interval stretched(const Interval& interval, double estimate, double factor);

// exp of both ends: of an interval on the scale of logarithms.
Interval exp_of(const Interval& logs);

// Wilson's score interval (1927) of `successes` out of `n`, no continuity correction: with
// z = quantile(1 - (1 - confidence) / 2) and p = successes / n,
//   (p + z^2/2n -+ z sqrt(p (1-p) / n + z^2 / 4n^2)) / (1 + z^2/n).
// Absent for n = 0. 0 <= successes <= n, 0 < confidence < 1.
std::optional<Interval> wilson_interval(int64_t successes, int64_t n, double confidence = 0.95);

// The same of effective numbers, which needn't be whole. 0 <= successes <= n.
std::optional<Interval> score_interval(double successes, double n, double confidence = 0.95);

}  // namespace assay::stats
