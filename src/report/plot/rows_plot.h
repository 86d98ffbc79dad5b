// Values of named rows along one axis: ratios with intervals, bars, spans of time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plot/canvas.h"
#include "report/plot/scale.h"

namespace assay::plot {

struct Span {
  double low = 0;
  double high = 0;
};

enum class Tint { kFull, kPale, kOutline };

struct Bar {
  Span span;
  Tint tint = Tint::kFull;
  std::string tip;    // empty: the line's
  double height = 1;  // as a share of the line's: less stands on the same ground
};

// One of the values that a line's own value is made of: its mark is a small one.
struct SmallMark {
  double value = 0;
  std::string tip;
};

// One arm's on a row.
struct RowLine {
  Style style;
  std::optional<double> value;  // marked by the style's shape
  std::optional<Span> interval;
  std::vector<Bar> bars;
  std::vector<SmallMark> small;
  std::string text;  // behind it, at most kValueColumns
  std::string tip;
};

struct PlotRow {
  // A line of at most kLabelColumns, or several such lines; empty: the row has none.
  std::string label;
  std::vector<RowLine> lines;
};

// A value that others are held against.
struct RuleAt {
  double value = 0;
  std::string label;
};

struct RowsPanel {
  std::string title;  // at most kTitleColumns
  std::string alt;
  std::string x_label;  // with its unit
  std::optional<RuleAt> rule;
  std::vector<PlotRow> rows;
  // Room for the lines' texts; else that of the longest. Panels that are to be compared have the
  // same, so that a value stands in one place in all of them.
  size_t value_columns = 0;
};

// Columns of the longest text behind a line, up to kValueColumns.
size_t value_columns(const RowsPanel& panel);
// Adds the panel's values, intervals, bars, extra marks and rule to the extent: panels that are to
// be compared share their scale.
void add_extent(const RowsPanel& panel, Extent& extent);
Panel draw(const RowsPanel& panel, const Scale& scale);

}  // namespace assay::plot
