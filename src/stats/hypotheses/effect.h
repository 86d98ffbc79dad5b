// Effect sizes of two samples: standardised differences from mean, sd and n, and the chance that
// one is larger.
#pragma once

#include <optional>
#include <span>

#include "stats/samples/intervals.h"
#include "stats/samples/summary.h"

namespace assay::stats {

// Cohen's d (1988): (mean_a - mean_b) / pooled sd,
// pooled^2 = ((n_a-1) var_a + (n_b-1) var_b) / (n_a + n_b - 2). Absent if n < 2 or the sd is 0.
std::optional<double> cohen_d(const Moments& a, const Moments& b);

// Hedges' g (1981): d times the exact correction J(m) = Gamma(m/2) / (sqrt(m/2) Gamma((m-1)/2)),
// m = n_a + n_b - 2. Absent where d is.
std::optional<double> hedges_g(const Moments& a, const Moments& b);
// J(m), m > 1; for m = 1 it is 0, as d has no mean then, and g is absent.
std::optional<double> hedges_correction(double m);

// The interval of d by the noncentral t (Steiger and Fouladi 1997): the noncentralities for which
// the observed t = d sqrt(n_a n_b / (n_a + n_b)) is the upper and the lower quantile, over that
// root. Assumes normal samples of one variance. That of g is J times it.
std::optional<Interval> cohen_d_interval(double d, int64_t n_a, int64_t n_b,
                                         double confidence = 0.95);

// Vargha and Delaney's A (2000), P(a > b) + P(a = b) / 2, with the interval that Brunner and Munzel
// (2000) give: standard error and degrees of freedom from placements, Student's quantile, cut at 0
// and 1. The interval is absent for n < 2 and where no value of one sample lies among the other's.
struct Superiority {
  double a = 0.5;
  std::optional<Interval> interval;
};
std::optional<Superiority> vargha_delaney(std::span<const double> a, std::span<const double> b,
                                          double confidence = 0.95);
// The same from figures, if both are normal: Phi((mean_a - mean_b) / sqrt(var_a + var_b)) (McGraw
// and Wong 1992). Absent without variance.
std::optional<double> normal_superiority(const Moments& a, const Moments& b);

}  // namespace assay::stats
