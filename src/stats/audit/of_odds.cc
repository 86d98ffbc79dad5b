// Odds ratios of two counts: the ratio, its interval and p on the scale of logarithms (Woolf 1955).
#include "stats/audit/relations.h"
#include "stats/distributions/distributions.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

// ln of (hits_a / misses_a) / (hits_b / misses_b), with the standard error that Woolf gives it.
struct LogOdds {
  double value = 0;
  double error = 0;
};

// Absent where a cell of the table is 0, unless a half is added to each (Haldane, Anscombe 1956).
std::optional<LogOdds> log_odds(Row x, Set set) {
  const auto hits_a = x.exact(kCountA);
  const auto n_a = x.exact(kTotalA);
  const auto hits_b = x.exact(kCountB);
  const auto n_b = x.exact(kTotalB);
  if (!hits_a || !n_a || !hits_b || !n_b) return std::nullopt;
  const double more = set.get<OddsBy>(kOddsBy) == OddsBy::kHaldane ? 0.5 : 0;
  double value = 0;
  double square = 0;
  for (const auto& [cell, sign] :
       {std::pair{*hits_a, 1}, {*n_a - *hits_a, -1}, {*hits_b, -1}, {*n_b - *hits_b, 1}}) {
    if (!(cell + more > 0)) return std::nullopt;
    value += sign * std::log(cell + more);
    square += 1 / (cell + more);
  }
  return LogOdds{value, std::sqrt(square)};
}

double sign_of_odds(Set set) {
  return set.get<RatioOf>(kOddsOf) == RatioOf::kAOverB ? 1 : -1;
}

double quantile_of(Row x) {
  return normal_quantile((1 + x.exact_or(kConfidence, 0.95)) / 2).value_or(std::nan(""));
}

Interval p_of_z(const Interval& z, Sides sides) {
  if (sides == Sides::kTwo) return two_sided_tail(z, point(kInfinite));
  return upper_tail(sides == Sides::kGreater ? z : negative(z), point(kInfinite));
}

// z from the ratio and the width of its interval.
MaybeReading p_of_interval(Row x, Set set) {
  const auto ratio = x[kOddsRatio];
  const auto low = x[kOddsLow];
  const auto high = x[kOddsHigh];
  if (set.test() != TestKind::kWoolf || !ratio || !low || !high) return std::nullopt;
  if (!(low->low > 0) || !(ratio->low > 0)) return std::nullopt;
  const auto log = [](const Interval& of) { return Interval{std::log(of.low), std::log(of.high)}; };
  const Interval width = difference(log(*high), log(*low));
  if (!(width.low > 0)) return std::nullopt;
  const Interval twice = product(log(*ratio), point(2 * quantile_of(x)));
  return Reading{p_of_z(signed_by(quotient(twice, width), sign_of_odds(set)), set.sides())};
}

}  // namespace

void add_odds_relations(std::vector<Relation>& table) {
  const std::vector<Axis> axes = {kOddsOf, kOddsBy};
  for (const auto& [figure, errors] : {std::pair{kOddsRatio, 0}, {kOddsLow, -1}, {kOddsHigh, 1}}) {
    table.push_back({figure, "the counts", axes, [=](Row x, Set set, size_t) -> MaybeReading {
                       const auto odds = log_odds(x, set);
                       if (!odds) return std::nullopt;
                       return Reading{point(std::exp(sign_of_odds(set) * odds->value +
                                                     errors * quantile_of(x) * odds->error))};
                     }});
  }
  table.push_back({kP, "the counts", {kSides, kTest}, [](Row x, Set set, size_t) -> MaybeReading {
                     if (set.test() != TestKind::kWoolf) return std::nullopt;
                     const auto odds = log_odds(x, ConventionSet());
                     if (!odds) return std::nullopt;
                     return Reading{p_of_z(point(odds->value / odds->error), set.sides())};
                   }});
  table.push_back(
      {kP, "the odds ratio and its interval", {kSides, kTest, kOddsOf}, [](Row x, Set set, size_t) {
         return p_of_interval(x, set);
       }});
}

}  // namespace assay::stats
