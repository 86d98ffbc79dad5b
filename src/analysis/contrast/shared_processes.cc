// Families of cells, and the factors that their variances make.
#include "analysis/contrast/shared_processes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stats/estimates/shared_spread.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Values over their mean, less 1. Empty without a positive mean.
stats::KeyedDeviations relative(std::span<const int64_t> keys, std::span<const double> values) {
  const auto mean = stats::mean(values);
  if (!mean || !(*mean > 0)) return {};
  stats::KeyedDeviations of{{keys.begin(), keys.end()}, {}};
  for (const double value : values) of.values.push_back(value / *mean - 1);
  return of;
}

struct MeanVariance {
  double square = 0;  // of the mean's error
  double df = 0;
};

// The variances of samples that know nothing of one another add up (Satterthwaite 1946).
MeanVariance sum_of(const MeanVariance& a, const MeanVariance& b) {
  const double square = a.square + b.square;
  const double share = a.square / square;
  return {square, 1 / (share * share / a.df + (1 - share) * (1 - share) / b.df)};
}

MeanVariance own_of(const stats::KeyedDeviations& deviations) {
  const auto variance = stats::variance(deviations.values);
  const auto n = static_cast<double>(deviations.values.size());
  return variance ? MeanVariance{*variance / n, n - 1} : MeanVariance{};
}

MeanVariance shared_of(const stats::SharedVariance& shared,
                       const stats::KeyedDeviations& deviations) {
  const auto n = static_cast<double>(std::max<size_t>(1, deviations.values.size()));
  return {shared.variance / n, shared.df};
}

SharedSpread spread_from(const MeanVariance& own, const MeanVariance& shared) {
  const bool more = own.square > 0 && own.df > 0 && shared.df > own.df;
  if (!more || !std::isfinite(shared.square / own.square)) return {};
  return {{std::sqrt(shared.square / own.square), shared.df / own.df, 0}, shared.df};
}

bool any_stands_out(std::span<const stats::SharedVariance> family) {
  return std::ranges::any_of(family, &stats::SharedVariance::stands_out);
}

}  // namespace

stats::Widening both(const stats::Widening& one, const stats::Widening& other) {
  return {one.error * other.error, one.df * other.df, one.log_variance + other.log_variance};
}

namespace {

// A group's processes, or nothing where they aren't its stratum's unit.
struct GroupShare {
  stats::KeyedDeviations deviations;
  stats::SharedVariance shared;
  bool unsure = false;  // as SharedSpread's
};

std::vector<GroupShare> share_groups(const Samples& samples, const Units& units) {
  std::vector<GroupShare> result(samples.groups.size());
  std::map<std::pair<Phase, size_t>, std::vector<size_t>> families;
  for (size_t g = 0; g < result.size(); ++g) {
    const Group& group = samples.groups[g];
    if (units.of(group.stratum) != ContrastUnit::kProcesses) continue;
    const UnitSeries& series = units.series(g);
    result[g].deviations = relative(series.keys, unit_values(series));
    families[{samples.strata[group.stratum].phase, group.arm}].push_back(g);
  }
  for (const auto& [key, members] : families) {
    std::vector<stats::KeyedDeviations> family;
    for (const size_t g : members) family.push_back(result[g].deviations);
    const auto shared = stats::share_variances(family);
    const bool any = any_stands_out(shared);
    for (size_t m = 0; m < members.size(); ++m) {
      GroupShare& one = result[members[m]];
      one.shared = shared[m];
      one.unsure = any && one.deviations.values.size() == 2;
    }
  }
  return result;
}

// The differences of a pair's rounds, as they are in the error of its ratio.
stats::KeyedDeviations of_rounds(const PairUnits& units) {
  stats::KeyedDeviations of = relative(units.keys, units.arm);
  const stats::KeyedDeviations base = relative(units.keys, units.baseline);
  if (of.values.size() != base.values.size()) return {};
  for (size_t u = 0; u < of.values.size(); ++u) of.values[u] -= base.values[u];
  return of;
}

struct ArmsOfPhase {
  Phase phase = Phase::kPrefill;
  size_t first = 0;
  size_t second = 0;
  friend auto operator<=>(const ArmsOfPhase&, const ArmsOfPhase&) = default;
};

// Spreads of two arms' ratio on each stratum, where they are paired. A stratum on which either
// arm's own processes stand out keeps its own spread, since differences of two wild arms may agree
// by chance; of two processes all strata then do.
std::vector<SharedSpread> paired_spreads(const Samples& samples, const Units& units,
                                         const std::vector<GroupShare>& groups,
                                         const ArmsOfPhase& arms) {
  std::vector<stats::KeyedDeviations> rounds(samples.strata.size());
  std::vector<bool> wild(rounds.size());
  for (size_t stratum = 0; stratum < rounds.size(); ++stratum) {
    const Group* first = samples.find(stratum, arms.first);
    const Group* second = samples.find(stratum, arms.second);
    if (samples.strata[stratum].phase != arms.phase || first == nullptr || second == nullptr ||
        units.of(stratum) != ContrastUnit::kProcesses || !units.paired(stratum)) {
      continue;
    }
    const GroupPair pair{samples.index_of(*first), samples.index_of(*second)};
    rounds[stratum] = of_rounds(units.pair(pair));
    wild[stratum] = groups[pair.arm].shared.stands_out || groups[pair.baseline].shared.stands_out;
  }
  const auto shared = stats::share_variances(rounds);
  const bool any = any_stands_out(shared) || std::ranges::find(wild, true) != wild.end();
  std::vector<SharedSpread> result(rounds.size());
  for (size_t stratum = 0; stratum < rounds.size(); ++stratum) {
    result[stratum].unsure = any && rounds[stratum].values.size() == 2;
    if (wild[stratum] || result[stratum].unsure) continue;
    result[stratum] =
        spread_from(own_of(rounds[stratum]), shared_of(shared[stratum], rounds[stratum]));
  }
  return result;
}

// The spread of arms that know nothing of each other: errors of both means, on the scale of the
// first.
SharedSpread of_both(const GroupShare& arm, const GroupShare& base, double base_over_arm) {
  const double scale = base_over_arm * base_over_arm;
  const auto scaled = [&](MeanVariance of) { return MeanVariance{of.square * scale, of.df}; };
  const MeanVariance own = own_of(arm.deviations);
  const MeanVariance own_base = scaled(own_of(base.deviations));
  if (arm.unsure || base.unsure) return {.unsure = true};
  if (!(own.square > 0) || !(own_base.square > 0)) return {};
  return spread_from(sum_of(own, own_base),
                     sum_of(shared_of(arm.shared, arm.deviations),
                            scaled(shared_of(base.shared, base.deviations))));
}

}  // namespace

std::vector<SharedSpread> spreads_of_groups(const Samples& samples, const Units& units) {
  std::vector<SharedSpread> result;
  for (const GroupShare& one : share_groups(samples, units)) {
    result.push_back(spread_from(own_of(one.deviations), shared_of(one.shared, one.deviations)));
  }
  return result;
}

std::vector<SharedSpread> spreads_of_pairs(const Samples& samples, const Units& units,
                                           std::span<const GroupPair> pairs) {
  const std::vector<GroupShare> groups = share_groups(samples, units);
  std::map<ArmsOfPhase, std::vector<SharedSpread>> paired;  // by stratum
  std::vector<SharedSpread> result(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Group& arm = samples.groups[pairs[i].arm];
    const Group& base = samples.groups[pairs[i].baseline];
    if (units.of(arm.stratum) != ContrastUnit::kProcesses || &arm == &base) continue;
    if (!units.paired(arm.stratum)) {
      result[i] = of_both(groups[pairs[i].arm], groups[pairs[i].baseline],
                          *stats::mean(base.warm_ms) / *stats::mean(arm.warm_ms));
      continue;
    }
    const ArmsOfPhase key{samples.strata[arm.stratum].phase, std::min(arm.arm, base.arm),
                          std::max(arm.arm, base.arm)};
    const auto [known, is_new] = paired.try_emplace(key);
    if (is_new) known->second = paired_spreads(samples, units, groups, key);
    result[i] = known->second[arm.stratum];
  }
  return result;
}

}  // namespace assay
