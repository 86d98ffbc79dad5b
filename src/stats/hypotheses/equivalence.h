// Equivalence in full: both one-sided tests, and the interval that goes with them.
#pragma once

#include <optional>

#include "stats/hypotheses/tests.h"

namespace assay::stats {

// tests.h's tost() is the larger of both p. The interval, of confidence 1 - 2 alpha, lies within
// the margins exactly where both p are below alpha (Schuirmann 1987). It is absent where it has no
// end.
struct Equivalence {
  double estimate = 0;
  TestResult above_low;
  TestResult below_high;
  std::optional<Interval> interval;
  bool holds(double alpha) const { return above_low.p < alpha && below_high.p < alpha; }
  const TestResult& larger() const {
    return above_low.log_p > below_high.log_p ? above_low : below_high;
  }
};

// Absent where tost() is.
std::optional<Equivalence> equivalence(double estimate, const StandardError& error, double low,
                                       double high, double alpha);
// Equivalence of mean_a / mean_b, as tost_ratio() tests it; the interval is Fieller's (1954) with
// Welch's degrees of freedom at either end.
std::optional<Equivalence> equivalence_of_ratio(const Moments& a, const Moments& b, double low,
                                                double high, double alpha);

}  // namespace assay::stats
