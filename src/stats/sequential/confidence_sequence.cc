// The e-value's inversion in closed form, in logarithms as far as they are needed.
#include "stats/sequential/confidence_sequence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/samples/series.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

constexpr double kEffectSd = 2;  // tau
constexpr double kMostAutocorrelation = 0.9;

// r and g of the header.
struct Mixture {
  double r = 0;
  double g = 0;
  bool can_exclude() const { return g < r; }
};

Mixture mixture(int64_t values, double alpha) {
  const auto n = static_cast<double>(values);
  const double r = 1 + n * kEffectSd * kEffectSd;
  return {r, std::exp((std::log(r) / 2 - std::log(alpha)) * 2 / n)};
}

// Exponent of the power of two by which values are divided, so that no square or cube leaves the
// range of a double: the interval moves with the values' scale.
int exponent_of_largest(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest > 0 ? std::ilogb(largest) : 0;
}

// f of the header.
double widening_of_neighbours(std::span<const double> values) {
  const auto r = autocorrelation(values, 1);
  const double alike = (r ? (*r)[1] : 0) + 1 / static_cast<double>(values.size());
  const double c = std::clamp(alike, 0.0, kMostAutocorrelation);
  return (1 + c) / (1 - c);
}

// Distance by which skewness moves an end (header): the upper end up if positive, the lower end
// down if negative. `half` is the half-width so far; the values aren't all the same.
double shift_of_skewness(std::span<const double> values, const Moments& of, double half) {
  const auto n = static_cast<double>(values.size());
  double cubes = 0;
  for (const double value : values) cubes += std::pow(value - of.mean, 3);
  const double z = half * std::sqrt(n / of.variance);
  return cubes / n / of.variance * (1 + 2 * z * z) / (6 * n);
}

}  // namespace

std::optional<Interval> anytime_interval(std::span<const double> given, double alpha) {
  if (given.empty()) return std::nullopt;
  const int exponent = exponent_of_largest(given);
  std::vector<double> values(given.begin(), given.end());
  for (double& value : values) value = std::ldexp(value, -exponent);
  const Mixture mixed = mixture(static_cast<int64_t>(values.size()), alpha);
  if (!mixed.can_exclude()) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  const auto of = moments(values);
  if (!of) return std::nullopt;
  const double squares = of->variance * (n - 1);
  const auto scaled = [&](double low, double high) -> std::optional<Interval> {
    const Interval interval{std::ldexp(low, exponent), std::ldexp(high, exponent)};
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return std::nullopt;
    return interval;
  };
  if (squares == 0) return scaled(of->mean, of->mean);
  const double f = widening_of_neighbours(values);
  const double half = std::sqrt(f * squares * (mixed.g - 1) / (n * (1 - mixed.g / mixed.r)));
  const double shift = shift_of_skewness(values, *of, half);
  return scaled(of->mean - half + std::min(0.0, shift), of->mean + half + std::max(0.0, shift));
}

int64_t least_looks(double alpha) {
  int64_t n = 1;
  while (!mixture(n, alpha).can_exclude()) ++n;
  return n;
}

std::optional<Interval> confirmed_interval(std::span<const double> values, double alpha) {
  if (values.empty()) return std::nullopt;
  const auto before = anytime_interval(values.first(values.size() - 1), alpha);
  const auto now = anytime_interval(values, alpha);
  if (!before || !now) return std::nullopt;
  return Interval{std::min(before->low, now->low), std::max(before->high, now->high)};
}

int64_t least_confirmed_looks(double alpha) {
  return least_looks(alpha) + 1;
}

}  // namespace assay::stats
