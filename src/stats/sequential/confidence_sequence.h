// An interval of a mean that may be looked at after every value: whoever stops when it suits has
// no more wrong intervals than who doesn't.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stats/samples/intervals.h"

namespace assay::stats {

// The confidence sequence of Lai's (1976) kind for a mean with unknown variance, with a Gaussian
// mixture over the effect: the chance that it excludes the true mean at any n, from the first value
// to the last, is at most alpha.
//
// For n independent normal values with the mean m and W = sum (x - mean)^2, the e-value against m,
//   e_n(m) = r^(-1/2) ((W + P) / (W + P / r))^(n / 2), P = n (mean - m)^2, r = 1 + n tau^2,
// is the Bayes factor of "the effect (true mean - m) / sd is drawn from N(0, tau^2)" with the
// right Haar prior for sd, and a test martingale of the values' ratios, so that it exceeds
// 1 / alpha at some n with a chance of at most alpha (Ville 1939; Wang and Ramdas 2025,
// "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance";
// Perez-Ortiz, Lardy, de Heide and Grunwald 2024). The interval is {m : e_n(m) < 1 / alpha},
//   mean -+ sqrt(f W (g - 1) / (n (1 - g / r))), g = (sqrt(r) / alpha)^(2 / n).
// f = (1 + c) / (1 - c) >= 1 widens it where neighbours are alike: c is the autocorrelation of lag
// 1 about the mean, plus 1 / n for its bias, between 0 and 0.9. It only widens, so that it costs no
// validity where values are independent.
//
// Skewed values move an end outwards, never inwards, by the first-order term of Hall's (1992)
// expansion of a t interval, k (1 + 2 z^2) / (6 n): k = (1 / n) sum (x - mean)^3 / sd^2 and
// z = half-width sqrt(n) / sd. k > 0 moves the upper end up, k < 0 the lower end down. So a mean
// that owes its place to calls without the few slow ones of a burst isn't taken for sure.
//
// tau = 2: sure differences of several standard deviations show after 4 to 6 values. Values that
// are symmetric about m with heavy tails are held more often, not less (docs/calibration.md has the
// simulations).
//
// Absent for fewer than least_looks(alpha) values, because no data could exclude anything yet, and
// where a double doesn't hold an end. Values are finite and of any size, 0 < alpha < 1.
std::optional<Interval> anytime_interval(std::span<const double> values, double alpha);

// The smallest n at which anytime_interval() can exclude anything.
int64_t least_looks(double alpha);

// The hull of the intervals at the last two looks, so that it excludes only what both exclude: a
// decision needs one more look that agrees. A burst that hits one arm only, which the values so far
// lack by chance, has one more chance to show. Absent if either of the two intervals is.
std::optional<Interval> confirmed_interval(std::span<const double> values, double alpha);

// The smallest n at which confirmed_interval() can exclude anything.
int64_t least_confirmed_looks(double alpha);

}  // namespace assay::stats
