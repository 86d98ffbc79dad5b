// Root of an increasing function, by which a distribution is inverted for its parameter.
#pragma once

#include <cmath>
#include <optional>

namespace assay::stats {

// `f(x)` increases and may be absent (then so is the root). `low` is where the search begins and
// f(low) <= 0 need not be checked by the caller: a bracket as wide as [low, guess] moves up or down
// until it holds the root, 60 times at most; absent if it doesn't by then. Inside the bracket:
// regula falsi with the Illinois rule (Dowell and Jarratt 1971) and a bisection at every eighth
// step, until x changes by a share of 1e-14 or less.
template <typename F>
std::optional<double> rising_root(const F& f, double low, double guess) {
  double high = guess > low ? guess : low + 1;
  auto at_low = f(low);
  auto at_high = f(high);
  for (int grown = 0; at_low && at_high && (*at_low > 0 || *at_high < 0); ++grown) {
    if (grown == 60) return std::nullopt;
    const double width = high - low;
    if (*at_high < 0) {
      low = high;
      at_low = at_high;
      high += width;
      at_high = f(high);
    } else {
      high = low;
      at_high = at_low;
      low -= width;
      at_low = f(low);
    }
  }
  int side = 0;
  double last = high;
  for (int step = 0; step < 200; ++step) {
    if (!at_low || !at_high) return std::nullopt;
    if (*at_low == 0) return low;
    if (*at_high == 0) return high;
    double x = (low * *at_high - high * *at_low) / (*at_high - *at_low);
    if (!(x > low && x < high) || step % 8 == 7) x = low + (high - low) / 2;
    if (!(x > low && x < high) || high - low <= 1e-15 * std::abs(x)) return x;
    const auto at = f(x);
    if (!at) return std::nullopt;
    if (std::abs(x - last) <= 1e-14 * std::abs(x)) return x;
    last = x;
    if (*at < 0) {
      low = x;
      at_low = at;
      if (side == -1) *at_high /= 2;
      side = -1;
    } else {
      high = x;
      at_high = at;
      if (side == 1) *at_low /= 2;
      side = 1;
    }
  }
  return low + (high - low) / 2;
}

}  // namespace assay::stats
