// A bundle's rows to the cells of a regime.
#include "portability/regime.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/identity_axes.h"
#include "analysis/contrast/any_look.h"
#include "analysis/contrast/process_range.h"
#include "analysis/named/named.h"
#include "analysis/named/void_comparisons.h"
#include "analysis/rows/processes.h"
#include "analysis/rows/summary.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

ArmConfig config_of(const Row& row) {
  return {row.cache.str(), row.compile_mode.str(), row.dynamic.str(), row.quantization.str(), ""};
}

// Values whose mean is a cell's: its processes' means or, if that is allowed, its rows.
std::vector<double> mean_series(const Group& group, bool allow_single_process) {
  if (several_processes(group)) return process_figures(group, ProcessFigure::kMean).values_ms;
  return allow_single_process ? group.warm_ms : std::vector<double>();
}

// Cells of one phase are a family: the machine makes neighbours alike.
void add_means(const Samples& samples, const RegimeOptions& options,
               std::vector<RegimeCell>& cells) {
  for (const Phase phase : kPhases) {
    std::vector<size_t> family;
    std::vector<std::vector<double>> series;
    for (size_t g = 0; g < cells.size(); ++g) {
      const Group& group = samples.groups[g];
      if (cells[g].stratum.phase != phase || group.warm.empty()) continue;
      std::vector<double> values = mean_series(group, options.allow_single_process);
      const bool shown = values.size() > 1;
      cells[g].mean = CellMean{*stats::mean(shown ? values : group.warm_ms),
                               group.sorted_ms.front(),
                               group.sorted_ms.back(),
                               std::nullopt,
                               0,
                               {}};
      if (!shown) continue;
      if (several_processes(group)) {
        const auto [least, most] = std::ranges::minmax(values);
        cells[g].mean->processes = std::ssize(values);
        cells[g].mean->process_means_ms = {least, most};
      }
      family.push_back(g);
      series.push_back(std::move(values));
    }
    const std::vector<std::optional<SeriesMean>> means = series_means(series);
    for (size_t i = 0; i < family.size(); ++i) {
      if (means[i]) cells[family[i]].mean->error = means[i]->error;
    }
  }
}

// Estimates of every two arms that have warm rows and answered the same prompts. Those with the
// baseline are the family of its contrasts, the others a family of theirs.
void add_pairs(const Samples& samples, const Units& units, const RegimeOptions& options,
               const std::string& baseline, std::vector<RegimeCell>& cells) {
  std::vector<GroupPair> families[2];
  for (size_t g = 0; g < cells.size(); ++g) {
    const Group& other = samples.groups[g];
    for (size_t h = g + 1; h < samples.first_group[other.stratum + 1]; ++h) {
      const Group& arm = samples.groups[h];
      if (arm.warm.empty() || other.warm.empty() || !same_prompts(arm, other)) continue;
      const bool turned = cells[h].arm == baseline;
      const bool with_baseline = turned || cells[g].arm == baseline;
      families[with_baseline ? 0 : 1].push_back(turned ? GroupPair{g, h} : GroupPair{h, g});
    }
  }
  for (const auto& family : families) {
    std::vector<Estimate> estimates = estimates_of(samples, units, family);
    for (size_t i = 0; i < family.size(); ++i) {
      if (options.allow_single_process) estimates[i].one_process = false;
      ArmPair& pair = cells[family[i].arm].beside[cells[family[i].baseline].arm];
      pair.whole = std::move(estimates[i]);
      for (auto& round : estimates_of_rounds(samples, units, family[i])) {
        pair.rounds.insert(std::move(round));
      }
    }
  }
}

const ArmPair* pair_beside(const RegimeCell& arm, const RegimeCell& other) {
  const auto at = arm.beside.find(other.arm);
  return at == arm.beside.end() ? nullptr : &at->second;
}

}  // namespace

Estimate estimate_beside(const RegimeCell& arm, const RegimeCell& other,
                         const std::optional<int64_t>& round) {
  const ArmPair* straight = pair_beside(arm, other);
  const ArmPair* pair = straight != nullptr ? straight : pair_beside(other, arm);
  if (pair == nullptr) return {.why_absent = "the arms answered different prompts"};
  Estimate estimate = pair->whole;
  if (round) {
    const auto at = pair->rounds.find(*round);
    if (at == pair->rounds.end()) return {.why_absent = "that round didn't serve both arms"};
    estimate = at->second;
  }
  return straight != nullptr ? estimate : inverted(std::move(estimate));
}

std::vector<int64_t> rounds_beside(const RegimeCell& arm, const RegimeCell& other) {
  std::vector<int64_t> rounds;
  for (const ArmPair* pair : {pair_beside(arm, other), pair_beside(other, arm)}) {
    if (pair == nullptr) continue;
    for (const auto& [round, estimate] : pair->rounds) rounds.push_back(round);
  }
  return rounds;
}

Estimate estimate_between(const CellMean& a, const CellMean& b) {
  Estimate of{.log_ratio = std::log(b.mean_ms / a.mean_ms), .unit = ContrastUnit::kProcesses};
  if (a.processes > 0 && b.processes > 0 && are_few_processes(a.processes, b.processes)) {
    of.too_few = true;
    of.range = stats::Interval{b.process_means_ms.low / a.process_means_ms.high,
                               b.process_means_ms.high / a.process_means_ms.low};
  }
  if (!a.error || !b.error) return of;
  const bool apart = a.highest_ms < b.lowest_ms || b.highest_ms < a.lowest_ms;
  const stats::MeanError of_a{a.mean_ms, a.error->value};
  const stats::MeanError of_b{b.mean_ms, b.error->value};
  const stats::StandardError errors[] = {
      {of_a.error / stats::log_scale(of_a, of_b, apart), a.error->df},
      {of_b.error / stats::log_scale(of_b, of_a, apart), b.error->df}};
  of.error = stats::error_of_sum(errors);
  return of;
}

std::string config_text(const ArmConfig& config) {
  std::vector<std::string> parts;
  if (!config.arm.empty()) parts.push_back(config.arm);
  if (!config.mode.empty()) parts.push_back(config.mode);
  if (!config.cache.empty()) parts.push_back(config.cache + " cache");
  if (!config.dynamic.empty()) parts.push_back("dynamic " + config.dynamic);
  if (!config.quantization.empty()) parts.push_back(config.quantization);
  return join(parts, ", ");
}

CrashRate crash_rate(Losses losses) {
  const auto interval = losses.interval();
  return {losses.lost, losses.attempted, interval, std::move(losses)};
}

Result<Regime> condense(const Bundle& bundle, const RegimeOptions& options) {
  Regime regime;
  const StudySummary study = summarize(bundle);
  regime.folder = bundle.folder.string();
  regime.name = bundle.folder.filename().string();
  if (regime.name.empty()) regime.name = bundle.folder.parent_path().filename().string();
  regime.baseline = study.baseline;
  regime.who = identity_part(bundle);
  ASSAY_TRY(const Samples samples, group_rows(bundle, study.arms));
  if (regime.baseline.empty() && !samples.arms.empty()) regime.baseline = samples.arms.front();
  const Units units(samples, !study.order.empty());
  const std::vector<std::string> reasons = void_comparisons(bundle, study, samples);
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    RegimeCell cell;
    cell.stratum = samples.strata[group.stratum];
    cell.arm = samples.arms[group.arm];
    cell.config = config_of(*group.rows.front());
    cell.crashes = crash_rate(losses_of(group));
    cell.execution = group.execution();
    cell.eager = eager_rows(group);
    cell.parity_failed = group.parity_failed;
    cell.several_processes = several_processes(group);
    cell.void_because = reasons[group.stratum];
    cell.looked_at = was_looked_at(samples, group.stratum);
    cell.warm = std::ssize(group.warm);
    regime.cells.push_back(std::move(cell));
  }
  add_means(samples, options, regime.cells);
  add_pairs(samples, units, options, regime.baseline, regime.cells);
  return regime;
}

}  // namespace assay
