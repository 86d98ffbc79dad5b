// Figures of a whole run in each of its cells, for comparisons by runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/judge.h"
#include "analysis/rows/processes.h"
#include "analysis/rows/samples.h"

namespace assay {

struct RunFigure {
  double log_ms = 0;  // ln of the mean of its processes' figures, which is cut as parts.h says
  double square = 0;  // variance of it that the processes show; 0: one process, or none shows
};
// Figures by stratum and arm. A cell without a positive figure is left out.
using CellPlace = std::pair<Stratum, std::string>;
using CellPlaces = std::vector<CellPlace>;
using RunFigures = std::map<CellPlace, RunFigure>;
RunFigures run_figures(const Samples& samples, ProcessFigure figure);

// Figure of several of the run's cells together: the mean of their logarithms. Absent: the run
// lacks one.
std::optional<RunFigure> mean_figure(const RunFigures& run, const CellPlaces& cells);

// The cells of a comparison that a combined one stands for.
CellPlaces parts_of(const ComparedCell& combined, const std::vector<Stratum>& strata,
                    const ComparedCells& all);

}  // namespace assay
