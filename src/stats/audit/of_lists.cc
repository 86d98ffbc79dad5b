// Lists: sums, weighted means, adjusted p; and percentiles in their order.
#include <array>
#include <numeric>

#include "stats/audit/relations.h"
#include "stats/hypotheses/multiple.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

constexpr std::array kPercentiles = {kMin, kP5,  kP10, kP25,  kP50, kP75,
                                     kP90, kP95, kP99, kP999, kMax};

MaybeReading sum_of(Row x, Figure parts) {
  const std::vector<Interval> list = x.list(parts);
  if (list.empty()) return std::nullopt;
  return Reading{std::accumulate(list.begin(), list.end(), point(0), sum)};
}

MaybeReading mean_of_parts(Row x, Set set) {
  const std::vector<Interval> means = x.list(kPartMeans);
  if (means.empty()) return std::nullopt;
  std::vector<Interval> weights(means.size(), point(1));
  if (set.get<Weights>(kWeights) == Weights::kByN) {
    weights = x.list(kPartNs);
    if (weights.size() != means.size()) return std::nullopt;
  }
  const Interval whole = std::accumulate(weights.begin(), weights.end(), point(0), sum);
  Interval all = point(0);
  for (size_t i = 0; i < means.size(); ++i) {
    all = sum(all, product(means[i], quotient(weights[i], whole)));
  }
  return Reading{all};
}

std::vector<double> adjusted(std::span<const double> p, Adjustment by) {
  switch (by) {
    case Adjustment::kHolm:
      return holm(p);
    case Adjustment::kBonferroni:
      return bonferroni(p);
    case Adjustment::kBenjaminiHochberg:
      return benjamini_hochberg(p);
    case Adjustment::kHochberg:
      return hochberg(p);
    case Adjustment::kHommel:
      return hommel(p);
    case Adjustment::kSidak:
      return sidak(p);
    case Adjustment::kHolmSidak:
      return holm_sidak(p);
    case Adjustment::kBenjaminiYekutieli:
      return benjamini_yekutieli(p);
    case Adjustment::kOther:
      break;
  }
  return {};
}

// Every adjustment grows with each p of the family.
MaybeReading adjusted_p(Row x, Set set, size_t element) {
  const std::vector<Interval> family = x.list(kPList);
  if (element >= family.size()) return std::nullopt;
  std::vector<double> low;
  std::vector<double> high;
  for (const Interval& p : family) {
    low.push_back(p.low);
    high.push_back(p.high);
  }
  const auto by = set.get<Adjustment>(kAdjustment);
  return Reading{{adjusted(low, by)[element], adjusted(high, by)[element]}};
}

// Range of a percentile: at least the lower ones that are printed, at most the higher ones.
MaybeReading between_neighbours(Row x, Figure figure) {
  Interval range = kAnything;
  bool others = false;
  bool before = true;
  for (const Figure other : kPercentiles) {
    if (other == figure) {
      before = false;
      continue;
    }
    const auto at = x[other];
    if (!at) continue;
    others = true;
    if (before) {
      range.low = std::max(range.low, at->low);
    } else {
      range.high = std::min(range.high, at->high);
    }
  }
  if (!others) return std::nullopt;
  return Reading{range, "", true};
}

}  // namespace

void add_list_relations(std::vector<Relation>& table) {
  table.push_back(
      {kCountTotal, "its parts", {}, [](Row x, Set, size_t) { return sum_of(x, kCountParts); }});
  table.push_back({kTotal, "its parts", {}, [](Row x, Set, size_t) { return sum_of(x, kParts); }});
  table.push_back({kTotalN, "part_ns", {}, [](Row x, Set, size_t) { return sum_of(x, kPartNs); }});
  table.push_back({kTotalMean, "part_means and part_ns", {kWeights}, [](Row x, Set set, size_t) {
                     return mean_of_parts(x, set);
                   }});
  table.push_back({kPAdjusted, "p_list", {kAdjustment}, adjusted_p});
  for (const Figure figure : kPercentiles) {
    table.push_back({figure, "the other percentiles", {}, [=](Row x, Set, size_t) {
                       return between_neighbours(x, figure);
                     }});
  }
}

}  // namespace assay::stats
