// Arithmetic on ranges: the range of a figure from the ranges of its inputs.
//
// Every range holds each value that the inputs' ranges allow, so a figure outside of it can't be
// had from them. It may be wider where an input is used twice. An end may be infinite. Interval
// arithmetic as in Moore (1966), without outward rounding: printed figures are far coarser than a
// double's last digit.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/samples/intervals.h"

namespace assay::stats {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Interval kAnything{-kInfinite, kInfinite};

inline Interval point(double x) {
  return {x, x};
}
inline Interval hull(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}
inline Interval negative(const Interval& x) {
  return {-x.high, -x.low};
}
inline Interval signed_by(const Interval& x, double sign) {
  return sign < 0 ? negative(x) : x;
}
inline Interval absolute(const Interval& x) {
  if (x.low >= 0) return x;
  if (x.high <= 0) return negative(x);
  return {0, std::max(-x.low, x.high)};
}

// The range of a function that is monotone in each argument, the others held: its extremes are at
// the corners. A corner where it isn't a number may be anything.
template <typename F>
Interval over_corners(const F& f, const Interval& a) {
  const double x = f(a.low);
  const double y = a.high == a.low ? x : f(a.high);
  if (std::isnan(x) || std::isnan(y)) return kAnything;
  return {std::min(x, y), std::max(x, y)};
}
template <typename F, typename... Rest>
Interval over_corners(const F& f, const Interval& a, const Rest&... rest) {
  const auto at = [&](double x) {
    return over_corners([&](auto... others) { return f(x, others...); }, rest...);
  };
  const Interval low = at(a.low);
  return a.high == a.low ? low : hull(low, at(a.high));
}

inline Interval sum(const Interval& a, const Interval& b) {
  return {a.low + b.low, a.high + b.high};
}
inline Interval difference(const Interval& a, const Interval& b) {
  return {a.low - b.high, a.high - b.low};
}
inline Interval product(const Interval& a, const Interval& b) {
  return over_corners([](double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }, a, b);
}
// Anything where the divisor's range passes 0.
inline Interval quotient(const Interval& a, const Interval& b) {
  if (b.low < 0 && b.high > 0) return kAnything;
  const double side = b.low < 0 ? -1 : 1;  // a divisor of 0 is the limit from its range
  return over_corners(
      [=](double x, double y) {
        if (y == 0) return x == 0 ? std::nan("") : side * x * kInfinite;
        return x / y;
      },
      a, b);
}
// The other end of an interval about its middle.
inline Interval opposite_end(const Interval& middle, const Interval& end) {
  return difference(product(point(2), middle), end);
}
inline Interval square(const Interval& x) {
  const Interval size = absolute(x);
  return {size.low * size.low, size.high * size.high};
}
inline Interval root(const Interval& x) {
  return {std::sqrt(std::max(0.0, x.low)), std::sqrt(std::max(0.0, x.high))};
}

// Tails and quantiles of the t distribution; infinite degrees of freedom are the normal
// distribution.
Interval upper_tail(const Interval& t, const Interval& df);      // P(T > t)
Interval two_sided_tail(const Interval& t, const Interval& df);  // P(|T| > |t|)
Interval t_quantile(double p, const Interval& df);

}  // namespace assay::stats
