// Rows to units, and units to pairs.
#include "analysis/contrast/units.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/rows/processes.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Processes of a stratum's arms that served side by side. As a rule those of one number; if one was
// lost, the process that went on for it serves the rest of the round, and is of the same round.
class Rounds {
 public:
  Rounds(const Samples& samples, size_t stratum) {
    std::map<int64_t, size_t> by_repetition;
    for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
      for (const Row* row : samples.groups[g].warm) {
        const size_t process = node({g, process_of(*row)});
        const auto [at, fresh] = by_repetition.try_emplace(row->repetition, process);
        if (!fresh) join(at->second, process);
      }
    }
    // Numbered as their first repetitions come.
    for (const auto& [repetition, process] : by_repetition) {
      numbers_.try_emplace(root(process), static_cast<int64_t>(numbers_.size()));
    }
  }

  size_t count() const { return numbers_.size(); }
  int64_t of(size_t group, const Row& row) {
    return numbers_.at(root(nodes_.at({group, process_of(row)})));
  }

 private:
  using Process = std::pair<size_t, int64_t>;  // group, number

  size_t node(const Process& process) {
    const auto [at, fresh] = nodes_.try_emplace(process, parents_.size());
    if (fresh) parents_.push_back(at->second);
    return at->second;
  }
  size_t root(size_t node) {
    while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
    return node;
  }
  void join(size_t a, size_t b) { parents_[root(b)] = root(a); }

  std::map<Process, size_t> nodes_;
  std::vector<size_t> parents_;
  std::map<size_t, int64_t> numbers_;  // of roots
};

// Place of a row in the order: two arms' rows of one pair have the same.
std::pair<int64_t, int64_t> place_of(const Row* row) {
  return {row->repetition, row->block};
}

std::vector<std::pair<int64_t, int64_t>> row_places(const Group& group) {
  std::vector<std::pair<int64_t, int64_t>> all;
  all.reserve(group.warm.size());
  for (const Row* row : group.warm) all.push_back(place_of(row));
  std::ranges::sort(all);
  return all;
}

// Warm rows by their places in the group.
using RowPlaces = std::vector<size_t>;

RowPlaces all_rows(const Group& group) {
  RowPlaces places(group.warm.size());
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

// The rows of one group whose repetition the other has a warm row of too, in the same block.
RowPlaces common_rows(const Group& group, const Group& other, const Blocks& blocks) {
  const std::vector<std::pair<int64_t, int64_t>> others = row_places(other);
  RowPlaces places;
  for (size_t i = 0; i < group.warm.size(); ++i) {
    const Row& row = *group.warm[i];
    if (!blocks.beside(group.stratum, row)) continue;
    if (std::ranges::binary_search(others, place_of(&row))) places.push_back(i);
  }
  return places;
}

// Rows of one key are one unit; units in the order of their first rows.
template <typename KeyOf>
UnitSeries collect(const Group& group, const RowPlaces& rows, const KeyOf& key_of) {
  UnitSeries series;
  std::map<int64_t, size_t> places;
  for (const size_t i : rows) {
    const int64_t key = key_of(i);
    const auto [at, fresh] = places.try_emplace(key, series.keys.size());
    if (fresh) {
      series.keys.push_back(key);
      series.rows.push_back(0);
      series.mean_ms.push_back(0);
    }
    ++series.rows[at->second];
    series.of_row.push_back(at->second);
    series.mean_ms[at->second] += group.warm_ms[i] - group.warm_ms[0];
  }
  // Each mean is summed as a distance from one value: units of one value repeated have exactly that
  // mean.
  for (size_t u = 0; u < series.keys.size(); ++u) {
    series.mean_ms[u] = group.warm_ms[0] + series.mean_ms[u] / static_cast<double>(series.rows[u]);
  }
  // They live as long as the analysis, and units may be as many as rows.
  series.keys.shrink_to_fit();
  series.rows.shrink_to_fit();
  series.mean_ms.shrink_to_fit();
  series.of_row.shrink_to_fit();
  return series;
}

UnitSeries rows_of(const Group& group) {
  UnitSeries series;
  series.keys.resize(group.warm.size());
  std::iota(series.keys.begin(), series.keys.end(), 0);
  series.rows.assign(group.warm.size(), 1);
  series.mean_ms = group.warm_ms;
  series.of_row.resize(group.warm.size());
  std::iota(series.of_row.begin(), series.of_row.end(), size_t{0});
  return series;
}

bool by_processes(const Samples& samples, size_t stratum) {
  bool any = false;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Group& group = samples.groups[g];
    if (group.warm.empty()) continue;
    if (!several_processes(group)) return false;
    any = true;
  }
  return any;
}

void keep(const UnitSeries& from, size_t at, UnitSeries& to) {
  to.keys.push_back(from.keys[at]);
  to.rows.push_back(from.rows[at]);
  to.mean_ms.push_back(from.mean_ms[at]);
}

}  // namespace

std::vector<double> unit_values(const UnitSeries& series) {
  const bool alike =
      std::ranges::adjacent_find(series.rows, std::ranges::not_equal_to()) == series.rows.end();
  if (alike) return series.mean_ms;
  double rows = 0;
  double sum = 0;
  for (size_t u = 0; u < series.rows.size(); ++u) {
    rows += static_cast<double>(series.rows[u]);
    sum += static_cast<double>(series.rows[u]) * series.mean_ms[u];
  }
  const double mean = sum / rows;
  const auto units = static_cast<double>(series.rows.size());
  std::vector<double> values;
  values.reserve(series.rows.size());
  for (size_t u = 0; u < series.rows.size(); ++u) {
    const double share = static_cast<double>(series.rows[u]) / rows;
    values.push_back(mean + units * share * (series.mean_ms[u] - mean));
  }
  return values;
}

Units::Units(const Samples& samples, bool order_recorded)
    : samples_(samples),
      blocks_(samples, order_recorded),
      units_(samples.strata.size(), ContrastUnit::kRows) {
  series_.resize(samples.groups.size());
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    if (paired(stratum)) units_[stratum] = ContrastUnit::kRepetitions;
    Rounds rounds(samples, stratum);
    if (by_processes(samples, stratum) && rounds.count() > 1)
      units_[stratum] = ContrastUnit::kProcesses;
    for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
      const Group& group = samples.groups[g];
      switch (units_[stratum]) {
        case ContrastUnit::kProcesses:
          series_[g] = collect(group, all_rows(group),
                               [&](size_t i) { return rounds.of(g, *group.warm[i]); });
          break;
        case ContrastUnit::kRepetitions:
          series_[g] =
              collect(group, all_rows(group), [&](size_t i) { return group.warm[i]->repetition; });
          break;
        case ContrastUnit::kRows:
          series_[g] = rows_of(group);
          break;
      }
    }
  }
}

PairUnits pair_units(const UnitSeries& arm, const UnitSeries& base, bool paired) {
  if (!paired || arm.keys == base.keys) {
    PairUnits units{unit_values(arm), unit_values(base), arm.mean_ms, base.mean_ms};
    units.keys = arm.keys;
    return units;
  }
  std::map<int64_t, size_t> places;
  for (size_t u = 0; u < base.keys.size(); ++u) places[base.keys[u]] = u;
  UnitSeries of_arm;
  UnitSeries of_base;
  for (size_t u = 0; u < arm.keys.size(); ++u) {
    const auto at = places.find(arm.keys[u]);
    if (at == places.end()) continue;
    keep(arm, u, of_arm);
    keep(base, at->second, of_base);
  }
  PairUnits units{unit_values(of_arm), unit_values(of_base), of_arm.mean_ms, of_base.mean_ms};
  units.whole = false;
  units.keys = of_arm.keys;
  return units;
}

UnitSeries without_rows(const UnitSeries& series, const Group& group,
                        const std::vector<bool>& kept) {
  UnitSeries rest = series;
  std::ranges::fill(rest.rows, 0);
  std::ranges::fill(rest.mean_ms, 0.0);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    const size_t unit = series.of_row[i];
    ++rest.rows[unit];
    rest.mean_ms[unit] += group.warm_ms[i];
  }
  for (size_t u = 0; u < rest.rows.size(); ++u) {
    if (rest.rows[u] > 0) rest.mean_ms[u] /= static_cast<double>(rest.rows[u]);
  }
  return rest;
}

PairUnits Units::pair(const GroupPair& pair) const {
  const UnitSeries& arm = series_[pair.arm];
  const UnitSeries& base = series_[pair.baseline];
  const Group& group = samples_.groups[pair.arm];
  const Group& other = samples_.groups[pair.baseline];
  const bool whole = arm.keys == base.keys && blocks_.all_beside(group.stratum) &&
                     std::ranges::equal(group.warm, other.warm, {}, place_of, place_of);
  if (!paired(group.stratum) || whole) return pair_units(arm, base, false);
  const RowPlaces rows = common_rows(group, other, blocks_);
  const RowPlaces other_rows = common_rows(other, group, blocks_);
  PairUnits units = pair_units(
      collect(group, rows, [&](size_t i) { return arm.keys[arm.of_row[i]]; }),
      collect(other, other_rows, [&](size_t i) { return base.keys[base.of_row[i]]; }), true);
  units.left_out =
      static_cast<int64_t>(group.warm.size() - rows.size() + other.warm.size() - other_rows.size());
  units.whole = false;
  return units;
}

std::vector<PairedProcess> pair_up(const Samples& samples, const Units& units, const Group& base,
                                   const Group& cand) {
  std::map<std::pair<int64_t, int64_t>, double> cand_ms;
  for (size_t i = 0; i < cand.warm.size(); ++i) {
    cand_ms[place_of(cand.warm[i])] = cand.warm_ms[i];
  }
  const bool rounds = units.of(base.stratum) == ContrastUnit::kProcesses;
  const UnitSeries& series = units.series(samples.index_of(base));
  std::map<int64_t, PairedProcess> by_round;
  for (size_t i = 0; i < base.warm.size(); ++i) {
    if (!units.blocks().beside(base.stratum, *base.warm[i])) continue;
    const auto other = cand_ms.find(place_of(base.warm[i]));
    if (other == cand_ms.end()) continue;
    const int64_t round = rounds ? series.keys[series.of_row[i]] : 0;
    PairedProcess& process = by_round[round];
    process.number = round;
    process.base_ms.push_back(base.warm_ms[i]);
    process.cand_ms.push_back(other->second);
  }
  std::vector<PairedProcess> processes;
  for (auto& [round, process] : by_round) processes.push_back(std::move(process));
  return processes;
}

}  // namespace assay
