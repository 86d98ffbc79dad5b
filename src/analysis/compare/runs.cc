// Runs as the units of a comparison.
#include "analysis/compare/runs.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/compare/judge.h"
#include "analysis/compare/other_tools.h"
#include "analysis/compare/parts.h"
#include "analysis/compare/run_figures.h"
#include "analysis/rows/summary.h"
#include "base/text/text.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// All rows of a side's runs in one bundle: the processes of a run are numbered behind those of the
// one before it. A cell's parity is that of a run where it failed, if there is one.
Bundle merge(std::span<const Bundle> runs) {
  Bundle merged = runs.front();
  for (const Bundle& run : runs.subspan(1)) {
    int64_t processes = 0;
    int64_t rows = 0;
    for (const Row& row : merged.rows) {
      processes = std::max(processes, process_of(row) + 1);
      rows = std::max(rows, row.order_index + 1);
    }
    for (Row row : run.rows) {
      row.process = process_of(row) + processes;
      row.order_index += rows;
      merged.rows.push_back(std::move(row));
    }
    std::ranges::copy(run.unit_notes, std::back_inserter(merged.unit_notes));
    std::ranges::copy(run.sittings, std::back_inserter(merged.sittings));
    for (const auto& [cell, evidence] : run.evidence) merged.evidence.try_emplace(cell, evidence);
    for (const auto& [cell, parity] : run.parity) {
      const auto [at, fresh] = merged.parity.try_emplace(cell, parity);
      if (!fresh && parity.is_object() && parity.value("passed", Json(true)) == Json(false)) {
        at->second = parity;
      }
    }
  }
  return merged;
}

// Each run's figures, by means and by typical calls.
struct SideOfRuns {
  std::vector<RunFigures> means;
  std::vector<RunFigures> typical;
  const std::vector<RunFigures>& by(ProcessFigure figure) const {
    return figure == ProcessFigure::kMean ? means : typical;
  }
};

Result<SideOfRuns> figures_of(std::span<const Bundle> runs) {
  SideOfRuns side;
  for (const Bundle& run : runs) {
    ASSAY_TRY(const Samples samples, group_rows(run, summarize(run).arms));
    side.means.push_back(run_figures(samples, ProcessFigure::kMean));
    side.typical.push_back(run_figures(samples, ProcessFigure::kMedian));
  }
  return side;
}

std::vector<double> logs_of(const std::vector<RunFigures>& runs, const CellPlaces& cells) {
  std::vector<double> logs;
  for (const RunFigures& run : runs) {
    if (const auto figure = mean_figure(run, cells)) logs.push_back(figure->log_ms);
  }
  return logs;
}

std::optional<stats::StandardError> error_between(const std::vector<double>& base,
                                                  const std::vector<double>& cand) {
  const auto left = stats::moments(base);
  const auto right = stats::moments(cand);
  if (left && right) return stats::welch_standard_error(*right, *left);
  const auto& known = left ? left : right;
  const size_t runs = left ? base.size() : cand.size();
  if (!known || !(known->variance > 0)) return std::nullopt;
  const double square = known->variance * (1 + 1 / static_cast<double>(runs));
  return stats::StandardError{std::sqrt(square), static_cast<double>(runs - 1)};
}

void judge_by_runs(const SideOfRuns& base, const SideOfRuns& cand, ProcessFigure figure,
                   const CellPlaces& cells, const CompareOptions& options, ComparedCell& cell) {
  const std::vector<double> before = logs_of(base.by(figure), cells);
  const std::vector<double> after = logs_of(cand.by(figure), cells);
  if (before.empty() || after.empty()) return;  // of several strata, in no run all
  const auto error = error_between(before, after);
  fill_tests(*stats::mean(after) - *stats::mean(before), error, options, cell);
  cell.alarm_error = cell.error;
  cell.by_processes = error.has_value();
  cell.verdict = error ? std::optional(Verdict::kInconclusive) : std::nullopt;
  const auto times = [](std::vector<double> logs) {
    for (double& log : logs) log = std::exp(log);
    return logs;
  };
  note_if_few(times(before), times(after), cell);
}

Result<std::vector<AxisDifference>> differences_within(std::span<const Bundle> runs,
                                                       const std::set<std::string>& vary) {
  std::vector<AxisDifference> all;
  for (const Bundle& run : runs.subspan(1)) {
    ASSAY_TRY(std::vector<AxisDifference> found, varied_axes(runs.front(), run, vary));
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

std::string names_of(std::span<const Bundle> runs) {
  std::vector<std::string> names;
  for (const Bundle& run : runs) names.push_back(run.folder.string());
  return join(names, ", ");
}

}  // namespace

Result<Comparison> compare_runs(std::span<const Bundle> base, std::span<const Bundle> cand,
                                const CompareOptions& options, const std::set<std::string>& vary) {
  ASSAY_TRY(std::vector<AxisDifference> varied, varied_axes(base.front(), cand.front(), vary));
  for (const std::span<const Bundle> side : {base, cand}) {
    ASSAY_TRY(std::vector<AxisDifference> found, differences_within(side, vary));
    std::ranges::move(found, std::back_inserter(varied));
  }
  const Bundle all_base = merge(base);
  const Bundle all_cand = merge(cand);
  ASSAY_TRY(const Samples left, group_rows(all_base, summarize(all_base).arms));
  ASSAY_TRY(const Samples right, group_rows(all_cand, summarize(all_cand).arms));
  ASSAY_TRY(const SideOfRuns base_runs, figures_of(base));
  ASSAY_TRY(const SideOfRuns cand_runs, figures_of(cand));
  const auto by_runs = [&](ProcessFigure figure, const std::vector<Stratum>& strata,
                           ComparedCells& cells) {
    for (ComparedCell& cell : cells.combined) {
      judge_by_runs(base_runs, cand_runs, figure, parts_of(cell, strata, cells), options, cell);
    }
    for (ComparedCell& cell : cells.cells) {
      judge_by_runs(base_runs, cand_runs, figure, {{strata[*cell.stratum], cell.arm}}, options,
                    cell);
    }
  };
  Comparison out = compare_samples(left, right, options, true, by_runs);
  out.base_runs = static_cast<int64_t>(base.size());
  out.cand_runs = static_cast<int64_t>(cand.size());
  out.base_name = names_of(base);
  out.cand_name = names_of(cand);
  out.varied = std::move(varied);
  out.base_load = machine_load(all_base);
  out.cand_load = machine_load(all_cand);
  out.load_differences = load_differences(out.base_load, out.cand_load);
  if (all_imported(base, cand)) out.caveat = caveat_of_other_tools(out);
  ASSAY_CHECK(check_common_cells(out));
  return out;
}

}  // namespace assay
