// A figure as an .svg file of its own: title, legend and panels side by side.
#pragma once

#include <string>
#include <vector>

#include "report/plot/canvas.h"

namespace assay::plot {

struct LegendEntry {
  std::string name;
  Style style;
  bool is_line = false;
  Around around = Around::kNothing;  // of a kind of row: no arm's, and so without the style's shape
};

// The entry's mark as an element of 22 by 12 pixels.
std::string legend_mark(const LegendEntry& entry);

// `title` is the finding in words, `caption` how to read it.
std::string sheet(const std::string& title, const std::string& caption,
                  const std::vector<LegendEntry>& legend, const std::vector<Panel>& panels);

}  // namespace assay::plot
