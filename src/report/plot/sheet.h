// A figure as an .svg file of its own: title, legend and panels side by side.
#pragma once

#include <string>
#include <vector>

#include "report/plot/canvas.h"

namespace assay::plot {

// The sample that an entry shows; but the first two, it is no arm's.
enum class Sample { kMark, kMarkedLine, kSmallMark, kRemark, kLightBar, kOutlineBar, kRule };

struct LegendEntry {
  std::string name;
  Style style;
  Sample sample = Sample::kMark;
  Around around = Around::kNothing;  // of a remark
};

// The entry's mark as an element of 22 by 12 pixels.
std::string legend_mark(const LegendEntry& entry);

// `title` is the finding in words, `caption` how to read it.
std::string sheet(const std::string& title, const std::string& caption,
                  const std::vector<LegendEntry>& legend, const std::vector<Panel>& panels);

}  // namespace assay::plot
