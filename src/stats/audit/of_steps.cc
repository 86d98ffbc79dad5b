// Means and deviations of values that are whole multiples of a step: which of them can be.
//
// A mean of n whole numbers is a multiple of 1 / n (GRIM: Brown and Heathers 2017), and the sum of
// their squares is a whole number, odd if their sum is (GRIMMER: Anaya 2016, Allard 2018).
#include "stats/audit/relations.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

constexpr double kMostWhole = 1e15;  // beyond it a double doesn't hold every whole number

struct SteppedGroup {
  Figure mean, sd, n;
};

// The possible mean that is nearest to the printed one.
MaybeReading nearest_mean(Row x, const SteppedGroup& of) {
  const auto step = x.exact(kStep);
  const auto mean = x.exact(of.mean);
  const auto n = x.exact(of.n);
  if (!step || !mean || !n) return std::nullopt;
  const double sum = std::round(*mean * *n / *step);
  if (!(std::abs(sum) < kMostWhole)) return std::nullopt;
  return Reading{point(sum / *n * *step)};
}

// The deviation of n whole numbers with this sum that is nearest to `wanted`. `divisor`: n - 1 or
// n.
double nearest_deviation(double sum, double n, double divisor, double wanted) {
  const double of_mean = sum * sum / n;
  const double whole = std::floor(sum / n);
  const double rest = sum - whole * n;  // so many of the most even numbers are one larger
  const double least = n * whole * whole + 2 * whole * rest + rest;
  const double squares = of_mean + divisor * wanted * wanted;
  // `least` is odd if the sum is, and so is every possible sum of squares.
  const double below = least + 2 * std::max(0.0, std::floor((squares - least) / 2));
  const auto deviation = [&](double of) {
    return std::sqrt(std::max(0.0, of - of_mean) / divisor);
  };
  const double low = deviation(below);
  const double high = deviation(below + 2);
  return std::abs(low - wanted) <= std::abs(high - wanted) ? low : high;
}

// The same of the deviation, over every sum that the printed mean may stand for.
MaybeReading nearest_sd(Row x, Set set, const SteppedGroup& of) {
  const auto step = x.exact(kStep);
  const auto mean = x[of.mean];
  const auto sd = x.exact(of.sd);
  const auto n = x.exact(of.n);
  if (!step || !mean || !sd || !n || *n < 2) return std::nullopt;
  const bool by_n = set.get<Divisor>(kDeviations) == Divisor::kPopulation;
  const double divisor = by_n ? *n : *n - 1;
  const double wanted = *sd / *step;
  const Interval sums = product(*mean, point(*n / *step));
  const double slack = 1e-9 * std::max(std::abs(sums.low), std::abs(sums.high));
  double first = std::ceil(sums.low - slack);
  double last = std::floor(sums.high + slack);
  if (first > last) first = last = std::round((sums.low + sums.high) / 2);
  constexpr double kMostSums = 1000;  // of which nearly any deviation can be
  const double largest = std::max(std::abs(first), std::abs(last));
  if (last - first > kMostSums || !(largest * largest + divisor * wanted * wanted < kMostWhole)) {
    return std::nullopt;
  }
  double nearest = nearest_deviation(first, *n, divisor, wanted);
  for (double sum = first + 1; sum <= last; ++sum) {
    const double found = nearest_deviation(sum, *n, divisor, wanted);
    if (std::abs(found - wanted) < std::abs(nearest - wanted)) nearest = found;
  }
  return Reading{point(nearest * *step)};
}

}  // namespace

void add_step_relations(std::vector<Relation>& table) {
  for (const SteppedGroup& of : {SteppedGroup{kMeanA, kSdA, kNA}, {kMeanB, kSdB, kNB}}) {
    table.push_back(
        {of.mean, "step and n", {}, [=](Row x, Set, size_t) { return nearest_mean(x, of); }});
    table.push_back({of.sd, "step, the mean and n", {kDeviations}, [=](Row x, Set set, size_t) {
                       return nearest_sd(x, set, of);
                     }});
  }
}

}  // namespace assay::stats
