// Points over two axes: distributions, latencies in their order, lines that cross.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plot/canvas.h"
#include "report/plot/rows_plot.h"
#include "report/plot/scale.h"

namespace assay::plot {

struct Point {
  double x = 0;
  double y = 0;
  std::string tip = {};
};

// A point that stands out: drawn larger, with a tip.
enum class MarkSize { kNone, kSmall, kWhole };  // none: only a pointer finds it

struct Mark {
  double x = 0;
  double y = 0;
  Around around = Around::kNothing;
  std::string tip;
  bool on_top_edge = false;  // it has no y: it is put on the upper edge
  std::optional<Span> y_interval = {};
  MarkSize size = MarkSize::kWhole;
};

enum class Join { kNone, kStraight, kSteps };

struct Series {
  std::string name;  // the tip of its line
  Style style;
  Join join = Join::kNone;
  std::vector<Point> points;  // ascending in x where they are joined; small marks where they aren't
  std::vector<Mark> marks;
};

struct XyPanel {
  std::string title;  // at most kTitleColumns
  std::string alt;
  std::string x_label;  // with its unit
  std::string y_label;
  Scale::Start x_start = Scale::Start::kFree;
  Scale::Start y_start = Scale::Start::kFree;
  std::optional<RuleAt> x_rule;  // a vertical line
  std::optional<RuleAt> y_rule;  // a horizontal one
  std::vector<Series> series;
};

Panel draw(const XyPanel& panel);

}  // namespace assay::plot
