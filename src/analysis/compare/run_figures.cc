// One figure a run and cell.
#include "analysis/compare/run_figures.h"

#include <cmath>

#include "analysis/contrast/typical.h"
#include "stats/samples/summary.h"

namespace assay {

RunFigures run_figures(const Samples& samples, ProcessFigure figure) {
  RunFigures figures;
  for (const Group& group : samples.groups) {
    std::vector<double> values = process_figures(group, figure).values_ms;
    if (figure == ProcessFigure::kMedian) values = cut_series(std::move(values)).values;
    const auto mean = stats::mean(values);
    if (!mean || !(*mean > 0) || !std::isfinite(*mean)) continue;
    RunFigure of_cell{std::log(*mean), 0};
    if (const auto sd = stats::standard_deviation(values)) {
      const double share = *sd / *mean;
      of_cell.square = share * share / static_cast<double>(values.size());
    }
    figures[{samples.strata[group.stratum], samples.arms[group.arm]}] = of_cell;
  }
  return figures;
}

std::optional<RunFigure> mean_figure(const RunFigures& run, const CellPlaces& cells) {
  RunFigure mean;
  const auto count = static_cast<double>(cells.size());
  for (const CellPlace& cell : cells) {
    const auto at = run.find(cell);
    if (at == run.end()) return std::nullopt;
    mean.log_ms += at->second.log_ms / count;
    mean.square += at->second.square / (count * count);
  }
  return mean;
}

CellPlaces parts_of(const ComparedCell& combined, const std::vector<Stratum>& strata,
                    const ComparedCells& all) {
  CellPlaces parts;
  for (const ComparedCell& cell : all.cells) {
    if (cell.phase == combined.phase && cell.arm == combined.arm) {
      parts.emplace_back(strata[*cell.stratum], cell.arm);
    }
  }
  return parts;
}

}  // namespace assay
