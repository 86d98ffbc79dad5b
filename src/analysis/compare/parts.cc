// One cell of two bundles, and cells combined.
#include "analysis/compare/parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/compare/crashes.h"
#include "analysis/compare/spread.h"
#include "analysis/contrast/process_range.h"
#include "analysis/contrast/typical.h"
#include "analysis/rows/processes.h"
#include "stats/estimates/ratio.h"
#include "stats/hypotheses/tests.h"
#include "stats/power/power.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// One bundle's rows of a cell beside the other's. `scale`: the divisor of its error,
// stats::log_scale().
struct Side {
  Side(const Group& of, const Group& other, const SidesByGroup& sides)
      : group(&of),
        compared(&sides.at(of)),
        scale(stats::log_scale(mean_of(*compared), mean_of(sides.at(other)), apart(of, other))) {}

  double mean() const { return compared->mean_ms; }

  const Group* group;
  const ComparedSide* compared;
  double scale;

 private:
  static stats::MeanError mean_of(const ComparedSide& side) {
    return {side.mean_ms, side.series ? side.series->error.value : 0};
  }
};

// `base`, `cand`: errors of ln of each side's mean; absent: there is none.
void add_tests(double log_ratio, const std::optional<stats::StandardError>& base,
               const std::optional<stats::StandardError>& cand, const CompareOptions& options,
               ComparedCell& cell) {
  const stats::StandardError slopes = cell.machine ? cell.machine->error : stats::StandardError();
  const auto error =
      base && cand ? stats::error_of_sum(std::array{*base, *cand, slopes}) : std::nullopt;
  fill_tests(log_ratio, error, options, cell);
  cell.alarm_error = cell.error;
}

std::optional<stats::StandardError> log_error(const std::optional<SeriesMean>& series,
                                              double scale) {
  if (!series) return std::nullopt;
  return stats::StandardError{series->error.value / scale, series->error.df};
}

void widen(SeriesMean& series, const std::optional<MachineShare>& machine) {
  if (!machine) return;
  series.error.value *= std::sqrt(machine->widening);
  series.error.df /= machine->widening;
}

// Shares of these groups' rows in the mean over groups of ln(mean): a series in the order of the
// run whose own mean has the error of that figure.
std::vector<double> influence_series(const std::vector<Side>& sides) {
  size_t rows = 0;
  for (const Side& side : sides) rows += side.group->warm.size();
  std::vector<std::pair<int64_t, double>> ordered;
  ordered.reserve(rows);
  for (const Side& side : sides) {
    const Group& group = *side.group;
    const double weight = static_cast<double>(rows) /
                          (static_cast<double>(group.warm.size() * sides.size()) * side.scale);
    for (size_t i = 0; i < group.warm.size(); ++i) {
      ordered.emplace_back(group.warm[i]->order_index, weight * (group.warm_ms[i] - side.mean()));
    }
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  std::vector<double> series;
  series.reserve(rows);
  for (const auto& [order, influence] : ordered) series.push_back(influence);
  return series;
}

// The same of processes: those of one number served the arm's cells at the same time, and are one
// process as a rule. Each counts as it does in its group's mean.
std::vector<double> process_influences(const std::vector<Side>& sides) {
  std::map<int64_t, double> by_number;
  for (const Side& side : sides) {
    const ProcessFigures& figures = side.compared->figures;
    for (size_t i = 0; i < figures.size(); ++i) {
      by_number[figures.numbers[i]] +=
          (figures.values_ms[i] - side.mean()) / (static_cast<double>(sides.size()) * side.scale);
    }
  }
  std::vector<double> series;
  series.reserve(by_number.size());
  for (const auto& [number, influence] : by_number) series.push_back(influence);
  return series;
}

double least_freedom(const std::vector<Side>& sides) {
  double least = 1;
  for (const Side& side : sides) least = std::min(least, side.compared->freedom);
  return least;
}

// Error of the mean over groups of ln(mean), the larger of two: that of the groups' own errors,
// which know how far each drifted, and that of the series of them all, which knows their common
// part.
std::optional<stats::StandardError> combined_error(const std::vector<Side>& sides,
                                                   const std::optional<SeriesMean>& whole) {
  std::vector<stats::StandardError> parts;
  for (const Side& side : sides) {
    const auto own =
        log_error(side.compared->series, side.scale * static_cast<double>(sides.size()));
    if (!own) return std::nullopt;
    parts.push_back(*own);
  }
  if (!whole) return std::nullopt;
  const auto own = stats::error_of_sum(parts);
  return own && own->value >= whole->error.value ? *own : whole->error;
}

std::optional<double> relative_sd(std::span<const double> values) {
  const auto mean = stats::mean(values);
  const auto sd = stats::standard_deviation(values);
  return mean && sd ? std::optional(*sd / *mean) : std::nullopt;
}

ComparedSide describe_side(const Group& group, ProcessFigure figure) {
  ComparedSide side;
  side.figures = process_figures(group, figure);
  side.processes = static_cast<int64_t>(side.figures.size());
  side.noise = relative_sd(group.warm_ms);
  if (side.processes > 1) side.process_noise = relative_sd(side.figures.values_ms);
  return side;
}

// Geometric means over the strata of each process' figure. Empty: of strata with different numbers
// of processes.
std::vector<double> process_means(const std::vector<Side>& sides) {
  std::vector<double> means(sides[0].compared->figures.size(), 0.0);
  for (const Side& side : sides) {
    const std::vector<double>& values = side.compared->figures.values_ms;
    if (values.size() != means.size()) return {};
    for (size_t p = 0; p < means.size(); ++p) {
      means[p] += std::log(values[p]) / static_cast<double>(sides.size());
    }
  }
  for (double& mean : means) mean = std::exp(mean);
  return means;
}

void cut_slowest_and_fastest(ComparedSide& side) {
  auto [values, freedom] = cut_series(std::move(side.figures.values_ms));
  side.figures.values_ms = std::move(values);
  side.freedom = freedom;
}

}  // namespace

void fill_tests(double log_ratio, const std::optional<stats::StandardError>& error,
                const CompareOptions& options, ComparedCell& cell) {
  cell.ratio = std::exp(log_ratio);
  cell.error = error;
  cell.test.reset();
  cell.tost.reset();
  cell.ratio_interval.reset();
  cell.minimum_detectable.reset();
  if (!error) return;
  cell.test = stats::t_test(log_ratio, *error);
  const double margin = std::log1p(options.margin);
  cell.tost = stats::tost(log_ratio, *error, -margin, margin);
  cell.ratio_interval = stats::t_interval_of_ratio(log_ratio, *error, kConfidence);
  const auto smallest = stats::minimum_detectable_difference(*error, options.alpha, options.power);
  if (smallest) cell.minimum_detectable = std::expm1(*smallest);
}

void note_if_few(std::span<const double> base, std::span<const double> cand, ComparedCell& cell) {
  cell.too_few = false;
  cell.ratio_range.reset();
  const auto [fewer, more] = std::minmax({base.size(), cand.size()});
  if (static_cast<int64_t>(fewer > 1 ? fewer : more) >= kLeastProcessesOfInterval) return;
  cell.too_few = true;
  if (fewer == 0 || more < 2) return;
  const auto [base_least, base_most] = std::ranges::minmax(base);
  const auto [cand_least, cand_most] = std::ranges::minmax(cand);
  cell.ratio_range = stats::Interval{cand_least / base_most, cand_most / base_least};
}

JudgedBy judged_by(const CellPair& pair, const CompareOptions& options) {
  if (several_processes(*pair.base) && several_processes(*pair.cand)) return JudgedBy::kProcesses;
  return options.allow_single_process ? JudgedBy::kRows : JudgedBy::kNothing;
}

std::optional<MachineShare> SidesByGroup::machine_of(const CellPair& pair) const {
  const auto at = machine.find(pair.base);
  return at == machine.end() ? std::nullopt : std::optional(at->second);
}

SidesByGroup sides_by_group(std::span<const CellPair> family, const CompareOptions& options,
                            ProcessFigure figure) {
  SidesByGroup all;
  for (const JudgedBy by : {JudgedBy::kNothing, JudgedBy::kRows, JudgedBy::kProcesses}) {
    const bool by_processes = by == JudgedBy::kProcesses;
    std::vector<ComparedSide*> sides;
    std::vector<std::optional<MachineShare>> machine;  // of each side, its pair's
    std::vector<std::vector<double>> series;
    for (const CellPair& pair : family) {
      if (judged_by(pair, options) != by) continue;
      ComparedSide& base = all.sides[pair.base] = describe_side(*pair.base, figure);
      ComparedSide& cand = all.sides[pair.cand] = describe_side(*pair.cand, figure);
      if (by_processes && options.machine_off) {
        const auto share = take_machine_off(base.figures, cand.figures);
        if (share) all.machine[pair.base] = *share;
      }
      for (const auto& [side, group] : {std::pair{&base, pair.base}, {&cand, pair.cand}}) {
        if (figure == ProcessFigure::kMedian) cut_slowest_and_fastest(*side);
        sides.push_back(side);
        machine.push_back(all.machine_of(pair));
        series.push_back(by_processes ? side->figures.values_ms : group->warm_ms);
        side->mean_ms = stats::mean(series.back()).value_or(0);
      }
    }
    if (by == JudgedBy::kNothing) continue;
    const std::vector<std::optional<SeriesMean>> means = series_means(series);
    for (size_t i = 0; i < sides.size(); ++i) {
      sides[i]->series = means[i];
      if (!means[i] || !by_processes) continue;
      sides[i]->series->error.df *= sides[i]->freedom;
      widen(*sides[i]->series, machine[i]);
    }
  }
  return all;
}

ComparedCell compare_cell(Phase phase, const CellPair& pair, const SidesByGroup& sides,
                          const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.stratum = pair.stratum;
  cell.arm = pair.arm;
  cell.by_processes = judged_by(pair, options) == JudgedBy::kProcesses;
  cell.machine = sides.machine_of(pair);
  const Side base(*pair.base, *pair.cand, sides);
  const Side cand(*pair.cand, *pair.base, sides);
  cell.difference_ms = cand.mean() - base.mean();
  cell.base = *base.compared;
  cell.cand = *cand.compared;
  cell.n_base = static_cast<int64_t>(pair.base->warm.size());
  cell.n_cand = static_cast<int64_t>(pair.cand->warm.size());
  add_tests(std::log(cand.mean() / base.mean()), log_error(cell.base->series, base.scale),
            log_error(cell.cand->series, cand.scale), options, cell);
  cell.lost_factor = bounds_of_lost(pair);
  if (judged_by(pair, options) != JudgedBy::kNothing) cell.verdict = Verdict::kInconclusive;
  if (cell.by_processes) {
    note_if_few(cell.base->figures.values_ms, cell.cand->figures.values_ms, cell);
  }
  return cell;
}

ComparedCell combine_cells(Phase phase, const std::vector<CellPair>& parts,
                           const SidesByGroup& sides, const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.arm = parts[0].arm;
  cell.strata = static_cast<int64_t>(parts.size());
  const auto all_by = [&](JudgedBy by) {
    return std::ranges::all_of(parts,
                               [&](const CellPair& p) { return judged_by(p, options) == by; });
  };
  cell.by_processes = all_by(JudgedBy::kProcesses);
  double log_ratio = 0;
  std::vector<Side> base;
  std::vector<Side> cand;
  std::vector<MachineShare> machine;
  std::vector<std::optional<stats::Interval>> lost;
  for (const CellPair& part : parts) {
    lost.push_back(bounds_of_lost(part));
    if (const auto share = sides.machine_of(part)) machine.push_back(*share);
    base.emplace_back(*part.base, *part.cand, sides);
    cand.emplace_back(*part.cand, *part.base, sides);
    log_ratio +=
        std::log(cand.back().mean() / base.back().mean()) / static_cast<double>(parts.size());
    cell.n_base += static_cast<int64_t>(part.base->warm.size());
    cell.n_cand += static_cast<int64_t>(part.cand->warm.size());
  }
  cell.machine = combined_share(machine, parts.size());
  const auto influences = cell.by_processes ? process_influences : influence_series;
  const std::vector<double> runs[] = {influences(base), influences(cand)};
  std::vector<std::optional<SeriesMean>> whole = series_means(runs);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i]) continue;
    whole[i]->error.df *= least_freedom(i == 0 ? base : cand);
    widen(*whole[i], cell.machine);
  }
  add_tests(log_ratio, combined_error(base, whole[0]), combined_error(cand, whole[1]), options,
            cell);
  cell.lost_factor = combined_bounds(lost);
  const bool judged = std::ranges::none_of(
      parts, [&](const CellPair& p) { return judged_by(p, options) == JudgedBy::kNothing; });
  if (judged) cell.verdict = Verdict::kInconclusive;
  if (!cell.by_processes) return cell;
  note_if_few(process_means(base), process_means(cand), cell);
  const auto few = [](const Side& side) {
    return side.compared->processes < kLeastProcessesOfInterval;
  };
  cell.too_few = std::ranges::any_of(base, few) || std::ranges::any_of(cand, few);
  return cell;
}

std::optional<double> add_alarm_errors(std::vector<ComparedCell>& cells,
                                       std::vector<ComparedCell>& combined) {
  std::vector<CellRatio> ratios;
  std::vector<ComparedCell*> judged;
  std::map<std::pair<Phase, std::string>, size_t> groups;
  for (ComparedCell& cell : cells) {
    if (!cell.by_processes || !cell.error) continue;
    const size_t group = groups.try_emplace({cell.phase, cell.arm}, groups.size()).first->second;
    ratios.push_back({group, std::log(cell.ratio), *cell.error});
    judged.push_back(&cell);
  }
  for (size_t i = 0; i < judged.size(); ++i) {
    judged[i]->alarm_error = with_spread(ratios[i].error, spread_of(ratios, i), 1);
  }
  const std::optional<Spread> whole = spread_of(ratios);
  for (ComparedCell& cell : combined) {
    if (!cell.by_processes || !cell.error) continue;
    cell.alarm_error = with_spread(*cell.error, whole, static_cast<size_t>(cell.strata));
  }
  return whole ? std::optional(std::sqrt(whole->square)) : std::nullopt;
}

}  // namespace assay
