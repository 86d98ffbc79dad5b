// The spread between runs of a history, and alarms that have to beat it.
#include "analysis/compare/history.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/judge.h"
#include "analysis/compare/parts.h"
#include "analysis/rows/summary.h"
#include "base/add_once.h"
#include "base/text/text.h"

namespace assay {
namespace {

void hold_against(const History& history, const CellPlaces& cells, ProcessFigure figure,
                  ComparedCell& cell) {
  const auto between = history.between(cells, figure);
  if (!between) return;
  cell.between_runs = std::sqrt(between->square / 2);
  if (cell.error) cell.alarm_error = with_spread(*cell.error, between, 1);
}

}  // namespace

Status History::add(const Bundle& run) {
  ASSAY_TRY(const Samples samples, group_rows(run, summarize(run).arms));
  means_.push_back(run_figures(samples, ProcessFigure::kMean));
  typical_.push_back(run_figures(samples, ProcessFigure::kMedian));
  return {};
}

std::optional<Spread> History::between(const CellPlaces& cells, ProcessFigure figure) const {
  std::vector<RunFigure> figures;
  for (const RunFigures& run : figure == ProcessFigure::kMean ? means_ : typical_) {
    if (const auto mean = mean_figure(run, cells)) figures.push_back(*mean);
  }
  if (static_cast<int64_t>(figures.size()) < kLeastHistory) return std::nullopt;
  const auto n = static_cast<double>(figures.size());
  Spread spread;
  double of_processes = 0;
  for (size_t i = 1; i < figures.size(); ++i) {
    const double step = figures[i].log_ms - figures[i - 1].log_ms;
    spread.raw += step * step / (n - 1);
    of_processes += (figures[i].square + figures[i - 1].square) / (n - 1);
  }
  spread.square = std::max(0.0, spread.raw - of_processes);
  spread.df = 2 * (n - 1) * (n - 1) / (3 * n - 4);
  return spread;
}

AlarmTests alarm_tests_of(const History& history) {
  return
      [&history](ProcessFigure figure, const std::vector<Stratum>& strata, ComparedCells& cells) {
        add_alarm_errors(cells.cells, cells.combined);
        for (ComparedCell& cell : cells.cells) {
          hold_against(history, {{strata[*cell.stratum], cell.arm}}, figure, cell);
        }
        for (ComparedCell& cell : cells.combined) {
          hold_against(history, parts_of(cell, strata, cells), figure, cell);
        }
      };
}

Result<Comparison> compare_with_history(const Bundle& base, const Bundle& cand,
                                        const CompareOptions& options,
                                        const std::set<std::string>& vary, const History& history) {
  ASSAY_TRY(Comparison out, compare(base, cand, options, vary, alarm_tests_of(history)));
  out.history_runs = history.runs();
  return out;
}

std::string unlike(const Bundle& base, const Bundle& run, std::set<std::string> vary) {
  vary.insert("code_sha");
  std::vector<std::string> axes;
  for (const AxisDifference& difference : identity_differences(base, run)) {
    if (vary.contains(difference.axis)) continue;
    add_once(axes, difference.axis);
  }
  return axes.empty() ? "" : "another " + join(axes, ", another ");
}

}  // namespace assay
