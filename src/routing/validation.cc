// Two halves of a study's rows, each judging the other's choices.
#include "routing/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "analysis/findings/options.h"
#include "analysis/rows/processes.h"
#include "base/random.h"
#include "routing/derive.h"
#include "routing/simulate.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr int64_t kHalfResamples = 1000;

using UnitOf = std::function<int64_t(const Row&)>;

// The samples with only the rows that are kept. Strata and arms stay where they are.
Samples part_of_samples(const Samples& samples, const std::function<bool(const Row&)>& kept) {
  Samples part = samples;
  for (Group& group : part.groups) {
    for (auto* rows : {&group.rows, &group.timed, &group.warm}) {
      std::erase_if(*rows, [&](const Row* row) { return !kept(*row); });
    }
    group.warm_ms = latencies_ms(group.warm);
    group.sorted_ms = stats::sorted(group.warm_ms);
  }
  return part;
}

// Sums of an arm's warm rows on a stratum, by unit of a half.
struct UnitSums {
  std::vector<double> ms;
  std::vector<double> rows;
  double mean(const std::vector<int>& times) const {
    double sum = 0;
    double count = 0;
    for (size_t u = 0; u < ms.size(); ++u) {
      sum += times[u] * ms[u];
      count += times[u] * rows[u];
    }
    return count > 0 ? sum / count : 0;
  }
};

// A half of the rows and the arms that it chooses.
struct HalfSample {
  Samples samples;
  std::map<int64_t, size_t> units;  // by their number: their place
  std::vector<std::string> arms;    // by stratum: its policy's arm there; empty: none
};

// Sums of one stratum that can be judged both ways. First index: the half that judges; of `chosen`
// the second: the half that chose the arm. `safe`: the safe arm's.
struct JudgedStratum {
  std::array<std::array<UnitSums, 2>, 2> chosen;
  std::array<UnitSums, 2> safe;
};

UnitSums unit_sums(const HalfSample& half, const Group& group, const UnitOf& unit) {
  UnitSums sums{std::vector<double>(half.units.size()), std::vector<double>(half.units.size())};
  for (size_t i = 0; i < group.warm.size(); ++i) {
    const size_t at = half.units.at(unit(*group.warm[i]));
    sums.ms[at] += group.warm_ms[i];
    sums.rows[at] += 1;
  }
  return sums;
}

// g(h, e), over strata; nothing where a resample left a cell without rows.
std::optional<double> log_gain(const std::vector<JudgedStratum>& strata, size_t chooser,
                               size_t judge, const std::vector<int>& times) {
  double sum = 0;
  for (const JudgedStratum& stratum : strata) {
    const double arm = stratum.chosen[judge][chooser].mean(times);
    const double safe = stratum.safe[judge].mean(times);
    if (!(arm > 0) || !(safe > 0)) return std::nullopt;
    sum += std::log(arm / safe);
  }
  return sum / static_cast<double>(strata.size());
}

struct HalfGains {
  double in = 0;
  double out = 0;
};
std::optional<HalfGains> gains(const std::vector<JudgedStratum>& strata,
                               const std::array<std::vector<int>, 2>& times) {
  std::array<std::array<double, 2>, 2> g{};
  for (size_t chooser = 0; chooser < 2; ++chooser) {
    for (size_t judge = 0; judge < 2; ++judge) {
      const auto one = log_gain(strata, chooser, judge, times[judge]);
      if (!one) return std::nullopt;
      g[chooser][judge] = *one;
    }
  }
  return HalfGains{(g[0][0] + g[1][1]) / 2, (g[0][1] + g[1][0]) / 2};
}

// Percentiles of a bootstrap of units within halves.
std::optional<stats::Interval> optimism_interval(const std::vector<JudgedStratum>& strata,
                                                 const std::array<HalfSample, 2>& halves,
                                                 double estimate, size_t units,
                                                 const AnalysisOptions& options) {
  if (units < 2) return std::nullopt;
  Random random(options.seed, 0x0F717);
  std::vector<double> replicates;
  for (int64_t b = 0; b < kHalfResamples; ++b) {
    std::array<std::vector<int>, 2> times;
    for (size_t half = 0; half < 2; ++half) {
      const size_t n = halves[half].units.size();
      times[half].assign(n, 0);
      for (size_t i = 0; i < n; ++i) ++times[half][random.below(n)];
    }
    if (const auto of = gains(strata, times)) replicates.push_back(of->out - of->in);
  }
  if (replicates.size() < 2) return std::nullopt;
  std::ranges::sort(replicates);
  const double tail = (1 - kConfidence) / 2;
  const double stretch = stretch_of_units(units);
  const auto end = [&](double p) {
    return std::expm1(estimate + stretch * (*stats::quantile(replicates, p) - estimate));
  };
  return stats::Interval{end(tail), end(1 - tail)};
}

// Strata that both halves judge; counts those on which they differ, and choices that broke.
std::vector<JudgedStratum> judged_strata(const std::array<HalfSample, 2>& halves,
                                         const std::vector<StratumChoice>& choices,
                                         const AnalysisOptions& options, const UnitOf& unit,
                                         Optimism& result) {
  std::vector<JudgedStratum> strata;
  for (const StratumChoice& whole : choices) {
    const std::array<const std::string*, 2> chosen = {&halves[0].arms[whole.stratum],
                                                      &halves[1].arms[whole.stratum]};
    if (whole.safe.empty() || chosen[0]->empty() || chosen[1]->empty()) continue;
    JudgedStratum stratum;
    bool usable = true;
    for (size_t judge = 0; judge < 2; ++judge) {
      const Samples& samples = halves[judge].samples;
      const auto group = [&](const std::string& arm) { return samples.find(whole.stratum, arm); };
      for (size_t chooser = 0; chooser < 2; ++chooser) {
        const Group& of = *group(*chosen[chooser]);
        const bool broken = !reason_barred(of, options).empty();
        result.broken += broken && chooser != judge ? 1 : 0;
        usable = usable && !broken;
        stratum.chosen[judge][chooser] = unit_sums(halves[judge], of, unit);
      }
      const Group& safe = *group(whole.safe);
      usable = usable && !safe.warm.empty();
      stratum.safe[judge] = unit_sums(halves[judge], safe, unit);
    }
    if (!usable) continue;
    result.differ += *chosen[0] != *chosen[1] ? 1 : 0;
    strata.push_back(std::move(stratum));
  }
  return strata;
}

}  // namespace

Optimism judge_out_of_sample(const ChoiceInputs& in, const std::vector<StratumChoice>& choices,
                             ThreadPool* pool) {
  Optimism result;
  const bool by_processes = std::ranges::any_of(in.samples.groups, several_processes);
  result.unit = by_processes ? "process" : "block";
  const UnitOf unit = [=](const Row& row) { return by_processes ? process_of(row) : row.block; };
  std::set<int64_t> numbers;
  for (const Group& group : in.samples.groups) {
    for (const Row* row : group.rows) numbers.insert(unit(*row));
  }
  if (numbers.size() < 2) {
    result.absent = "the study has one process and one block";
    return result;
  }
  std::map<int64_t, size_t> order;
  std::array<HalfSample, 2> halves;
  for (const int64_t number : numbers) {
    auto& units = halves[order.size() % 2].units;
    units.emplace(number, units.size());
    order.emplace(number, order.size());
  }
  result.units = std::ssize(halves[1].units);
  for (size_t half = 0; half < 2; ++half) {
    halves[half].samples = part_of_samples(
        in.samples, [&](const Row& row) { return halves[half].units.contains(unit(row)); });
    for (const Group& group : halves[half].samples.groups) {
      if (!group.rows.empty()) continue;
      result.absent = fmt::format("a {} has every row of some cell", result.unit);
      return result;
    }
    const ChoiceInputs part{halves[half].samples, in.order_recorded, in.void_because, in.options};
    halves[half].arms = served_arms(halves[half].samples, choose_arms(part, pool));
  }
  const auto strata = judged_strata(halves, choices, in.options, unit, result);
  result.strata = std::ssize(strata);
  if (strata.empty()) {
    result.absent = "no stratum has enough rows in both halves";
    return result;
  }
  const std::array<std::vector<int>, 2> once = {std::vector<int>(halves[0].units.size(), 1),
                                                std::vector<int>(halves[1].units.size(), 1)};
  const HalfGains of = *gains(strata, once);
  result.in_sample = std::exp(of.in);
  result.out_of_sample = std::exp(of.out);
  result.optimism = std::expm1(of.out - of.in);
  result.interval = optimism_interval(strata, halves, of.out - of.in,
                                      static_cast<size_t>(result.units), in.options);
  return result;
}

}  // namespace assay
