// Dependence of groups and of pairs, by families.
#include "analysis/contrast/widenings.h"

#include <map>
#include <utility>

#include "analysis/rows/processes.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// A series, with the keys of its family.
struct Member {
  std::vector<double> series;
  Phase phase = Phase::kPrefill;
  bool processes = false;
};

// Ten rounds hide half of an autocorrelation of 0.6: by the rule of long series, equal arms on five
// strata with such rounds differ in 12 % of runs. This rule halves that, and costs independent
// rounds no more than 2 points of power.
constexpr DependenceRule kRuleOfRounds{.level = 0.05, .errors = 1};

std::vector<Dependence> by_family(std::vector<Member> all,
                                  const DependenceRule& of_processes = {}) {
  std::vector<Dependence> result(all.size());
  for (const Phase phase : kPhases) {
    for (const bool processes : {false, true}) {
      std::vector<size_t> members;
      std::vector<std::vector<double>> family;
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].phase != phase || all[i].processes != processes) continue;
        members.push_back(i);
        family.push_back(std::move(all[i].series));
      }
      const std::vector<Dependence> found =
          dependences(family, processes ? of_processes : DependenceRule());
      for (size_t m = 0; m < members.size(); ++m) result[members[m]] = found[m];
    }
  }
  return result;
}

// x / mean - y / mean', of rows of the same repetition that compiled nothing; of paired strata
// those that ran side by side.
std::vector<double> differences_of_rows(const Units& units, const Group& arm, const Group& base) {
  std::vector<double> series;
  const auto mean = stats::mean(arm.warm_ms);
  const auto base_mean = stats::mean(base.warm_ms);
  if (&arm == &base || !mean || !base_mean || !(*mean > 0) || !(*base_mean > 0)) return series;
  const auto together = [&](const Row& row, const Row& other) {
    return !units.paired(arm.stratum) ||
           (row.block == other.block && units.blocks().beside(arm.stratum, row));
  };
  size_t i = 0;
  size_t j = 0;
  while (i < arm.warm.size() && j < base.warm.size()) {
    const int64_t left = arm.warm[i]->repetition;
    const int64_t right = base.warm[j]->repetition;
    if (left == right) {
      if (!carries_compilation(*arm.warm[i]) && !carries_compilation(*base.warm[j]) &&
          together(*arm.warm[i], *base.warm[j])) {
        series.push_back(arm.warm_ms[i] / *mean - base.warm_ms[j] / *base_mean);
      }
      ++i;
      ++j;
    } else {
      ++(left < right ? i : j);
    }
  }
  return series;
}

std::vector<double> differences_of_units(const PairUnits& units) {
  std::vector<double> series;
  const auto mean = stats::mean(units.arm);
  const auto base_mean = stats::mean(units.baseline);
  if (units.arm.size() != units.baseline.size() || !mean || !base_mean) return series;
  for (size_t u = 0; u < units.arm.size(); ++u) {
    series.push_back(units.arm[u] / *mean - units.baseline[u] / *base_mean);
  }
  return series;
}

std::vector<stats::Widening> widenings_of(const std::vector<Dependence>& all) {
  std::vector<stats::Widening> widenings;
  for (const Dependence& one : all) widenings.push_back(one.widening);
  return widenings;
}

}  // namespace

std::vector<Dependence> group_dependences(const Samples& samples) {
  std::vector<Member> all(samples.groups.size());
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    all[g].phase = samples.strata[group.stratum].phase;
    for (size_t i = 0; i < group.warm.size(); ++i) {
      if (!carries_compilation(*group.warm[i])) all[g].series.push_back(group.warm_ms[i]);
    }
  }
  return by_family(std::move(all));
}

std::vector<double> inflations_within_processes(const Samples& samples) {
  std::vector<double> result(samples.groups.size(), 1.0);
  for (const Phase phase : kPhases) {
    std::vector<size_t> members;
    std::vector<SeriesInParts> family;
    for (size_t g = 0; g < samples.groups.size(); ++g) {
      const Group& group = samples.groups[g];
      if (samples.strata[group.stratum].phase != phase) continue;
      std::map<int64_t, std::vector<double>> by_process;
      for (size_t i = 0; i < group.warm.size(); ++i) {
        const Row& row = *group.warm[i];
        if (!carries_compilation(row)) by_process[process_of(row)].push_back(group.warm_ms[i]);
      }
      members.push_back(g);
      SeriesInParts& parts = family.emplace_back();
      for (auto& [process, ms] : by_process) parts.push_back(std::move(ms));
    }
    const std::vector<double> found = inflations_within_parts(family);
    for (size_t m = 0; m < members.size(); ++m) result[members[m]] = found[m];
  }
  return result;
}

std::vector<Dependence> unit_dependences(const Samples& samples, const Units& units,
                                         const std::vector<Dependence>& of_rows) {
  std::vector<Member> all;
  std::vector<size_t> places;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const size_t stratum = samples.groups[g].stratum;
    if (units.of(stratum) != ContrastUnit::kProcesses) continue;
    all.push_back({unit_values(units.series(g)), samples.strata[stratum].phase, true});
    places.push_back(g);
  }
  const std::vector<Dependence> found = by_family(std::move(all));
  std::vector<Dependence> result = of_rows;
  for (size_t i = 0; i < places.size(); ++i) result[places[i]] = found[i];
  return result;
}

std::vector<stats::Widening> contrast_widenings(const Samples& samples, const Units& units,
                                                std::span<const GroupPair> pairs) {
  std::vector<Member> all;
  for (const GroupPair& pair : pairs) {
    const Group& arm = samples.groups[pair.arm];
    const Group& base = samples.groups[pair.baseline];
    const bool processes = units.of(arm.stratum) == ContrastUnit::kProcesses && &arm != &base;
    all.push_back(
        {processes ? differences_of_units(units.pair(pair)) : differences_of_rows(units, arm, base),
         samples.strata[arm.stratum].phase, processes});
  }
  return widenings_of(by_family(std::move(all), kRuleOfRounds));
}

}  // namespace assay
