// Values of named rows and columns as a map of tinted fields, each with its figure in it.
#pragma once

#include <string>
#include <vector>

#include "report/plot/canvas.h"

namespace assay::plot {

inline constexpr size_t kMostHeatColumns = 6;  // that a panel is wide enough for
inline constexpr size_t kHeatColumnLabel = 9;  // characters of a column's name at that many

// Strength of a field's tint; its figure says the rest.
enum class Heat { kNone, kFaint, kMiddle, kStrong };

struct HeatField {
  std::string text;  // at most 9 characters; empty: nothing was measured
  std::string tip;
  Heat heat = Heat::kNone;
  bool good = true;  // else bad: another colour
};

struct HeatRow {
  std::string label;  // at most kLabelColumns
  std::vector<HeatField> fields;
};

struct HeatPanel {
  std::string title;  // at most kTitleColumns
  std::string alt;
  std::vector<std::string> columns;  // at most kMostHeatColumns
  std::vector<HeatRow> rows;         // each as long as columns
};

Panel draw(const HeatPanel& panel);

}  // namespace assay::plot
