// A bundle's rows to the cells of a regime.
#include "portability/regime.h"

#include <algorithm>

#include "analysis/compare/identity_axes.h"
#include "analysis/contrast/any_look.h"
#include "analysis/contrast/units.h"
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

}  // namespace

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
  const auto interval = losses.interval(kCrashConfidence);
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
    cell.by_rounds = units.of(group.stratum) == ContrastUnit::kProcesses;
    cell.void_because = reasons[group.stratum];
    cell.looked_at = was_looked_at(samples, group.stratum);
    cell.paired = units.paired(group.stratum);
    cell.rows = measured_rows(samples, units, group);
    regime.cells.push_back(std::move(cell));
  }
  add_means(samples, options, regime.cells);
  return regime;
}

}  // namespace assay
