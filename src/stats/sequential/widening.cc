// Closed sums of powers of r.
#include "stats/sequential/widening.h"

#include <algorithm>
#include <cmath>

namespace assay::stats {
namespace {

double square_of_error(int64_t values, double inflation) {
  const auto n = static_cast<double>(values);
  const double g = std::clamp(inflation, 1.0, std::max(1.0, n / 2));
  return g * (n - 1) / (n - g);
}

}  // namespace

FirstOrder first_order(int64_t values, double r) {
  const auto n = static_cast<double>(values);
  if (!(r > 0)) return {1, n - 1};
  const double rest = 1 - r;
  const double r2 = r * r;
  const double rn = std::pow(r, n);
  const double inflation = (1 + r) / rest - 2 * r * (1 - rn) / (n * rest * rest);
  // Sums over all pairs of S_ij^2, and over rows of (sum_j S_ij)^2, whose i-th term is
  // (1 + r - r^i - r^(n + 1 - i)) / (1 - r).
  const double squares = n * (1 + r2) / (1 - r2) - 2 * r2 * (1 - rn * rn) / ((1 - r2) * (1 - r2));
  const double powers = r * (1 - rn) / rest;
  const double even_powers = r2 * (1 - rn * rn) / (1 - r2);
  const double rows =
      (n * (1 + r) * (1 + r) - 4 * (1 + r) * powers + 2 * even_powers + 2 * n * rn * r) /
      (rest * rest);
  const double trace = n - inflation;
  const double trace_of_square = squares - 2 * rows / n + inflation * inflation;
  if (!(trace > 0) || !(trace_of_square > 0)) return {inflation, 1};
  return {inflation, std::clamp(trace * trace / trace_of_square, 1.0, n - 1)};
}

Widening first_order_widening(int64_t n, double r, double r_error) {
  if (!(r > 0) || n < 2) return {};
  const FirstOrder at = first_order(n, r);
  const double square = square_of_error(n, at.inflation);
  const double high = std::max(r, std::min(r + r_error, kMostAlike));
  const double low = std::max(0.0, r - r_error);
  const double up = std::log(square_of_error(n, first_order(n, high).inflation) / square);
  const double down = std::log(square / square_of_error(n, first_order(n, low).inflation));
  const double way = std::max(up, (up + down) / 2);
  return {std::sqrt(square), at.df / static_cast<double>(n - 1), way * way};
}

}  // namespace assay::stats
