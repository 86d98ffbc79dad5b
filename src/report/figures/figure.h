// A report's figures: findings and rows drawn, each with the sentence that it shows and the numbers
// behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "base/tables/table.h"
#include "report/plot/canvas.h"
#include "report/plot/sheet.h"

namespace assay {

// Every mark of a figure of single rows, which are too many for a Table: one line a repetition, one
// column an arm.
struct PointGroup {
  std::string title;                           // its stratum
  std::vector<std::vector<std::string>> rows;  // each as long as columns
};
struct PointTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<PointGroup> groups;
};

// One without panels has nothing to draw: its finding says so.
struct Figure {
  std::string id;       // "prefill-ratios": its anchor, and the name of its file in plots/
  std::string finding;  // its title, a sentence on its result
  std::string caption;  // how to read it
  std::vector<plot::LegendEntry> legend;
  std::vector<plot::Panel> panels;
  std::vector<Table> tables;  // its numbers
  std::optional<PointTable> points = {};
};

// A part of the report: figures of one phase, or of the whole study.
struct FigureGroup {
  std::string id;
  std::string title;
  std::vector<Figure> figures;
  std::vector<std::string> lines;  // findings of figures that have nothing to draw
};

// One group a phase, then those about the whole study. Figures of single rows are left out where
// `plotted` is null, as findings.json has none.
std::vector<FigureGroup> figure_groups(const Findings& findings, const PlottedRows* plotted);

}  // namespace assay
