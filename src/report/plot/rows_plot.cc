#include "report/plot/rows_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::plot {
namespace {

constexpr double kLeft = 6;
constexpr double kTop = 24;
constexpr double kLabelHeight = 15;
constexpr double kLineHeight = 14;
constexpr double kRowGap = 4;
constexpr double kHalfBar = 4;
constexpr double kAxisHeight = 34;
constexpr double kValueCharacter = 6;  // of the widest common font
constexpr size_t kTicks = 7;

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

double label_height(const PlotRow& row) {
  if (row.label.empty()) return 0;
  return kLabelHeight * static_cast<double>(1 + std::ranges::count(row.label, '\n'));
}

double row_height(const PlotRow& row) {
  return label_height(row) + kLineHeight * static_cast<double>(row.lines.size()) + kRowGap;
}

// Right end of the values' area: the lines' texts stand right of it.
double right_end(const RowsPanel& panel) {
  const size_t columns = std::max(panel.value_columns, value_columns(panel));
  return kPanelWidth - 14 - static_cast<double>(columns) * kValueCharacter;
}

class RowsDrawing {
 public:
  RowsDrawing(const RowsPanel& panel, const Scale& scale)
      : panel_(panel), scale_(scale), right_(right_end(panel)) {
    bottom_ = kTop;
    for (const PlotRow& row : panel.rows) bottom_ += row_height(row);
  }

  Panel draw() {
    canvas_.text(0, 12, Anchor::kStart, "t", panel_.title);
    draw_axis();
    texts_.open_group("v e");
    double y = kTop;
    for (const PlotRow& row : panel_.rows) {
      draw_row(row, y);
      y += row_height(row);
    }
    texts_.close_group();
    return {kPanelWidth, bottom_ + kAxisHeight, panel_.alt, canvas_.take() + texts_.take()};
  }

 private:
  double x_of(double value) const { return kLeft + scale_.at(value) * (right_ - kLeft); }

  void draw_axis() {
    std::string grid;
    double last_end = -1;
    for (const Tick& tick : scale_.ticks(kTicks)) {
      const double x = x_of(tick.value);
      grid += fmt::format("M{} {}V{}", coordinate(x), coordinate(kTop - 4), coordinate(bottom_));
      const double width = static_cast<double>(tick.text.size()) * kValueCharacter;
      const double left = std::max(0.0, x - width / 2);  // at the edge it would stick out
      if (left < last_end) continue;
      last_end = left + width + 4;
      canvas_.text(left + width / 2, bottom_ + 12, Anchor::kMiddle, "n", tick.text);
    }
    canvas_.path(grid, "g");
    if (panel_.rule) {
      canvas_.path(fmt::format("M{} {}V{}", coordinate(x_of(panel_.rule->value)),
                               coordinate(kTop - 4), coordinate(bottom_)),
                   "r", panel_.rule->label);
    }
    canvas_.text(0, bottom_ + 26, Anchor::kStart, "n",
                 panel_.x_label + (scale_.logarithmic() ? ", log scale" : ""));
  }

  void draw_row(const PlotRow& row, double y) {
    for (size_t from = 0; from < row.label.size();) {
      const size_t end = std::min(row.label.find('\n', from), row.label.size());
      canvas_.text(0, y + 10, Anchor::kStart, "m", row.label.substr(from, end - from));
      y += kLabelHeight;
      from = end + 1;
    }
    for (const RowLine& line : row.lines) {
      draw_line(line, y + kLineHeight / 2);
      y += kLineHeight;
    }
  }

  // Those without a tip are one element a kind.
  void draw_bars(const RowLine& line, double y) {
    static constexpr std::array<std::string_view, 3> kClasses = {"b", "b2", "b3"};
    std::array<std::string, 3> rest;
    for (const Bar& bar : line.bars) {
      const double x = x_of(bar.span.low);
      const double width = std::max(0.5, x_of(bar.span.high) - x);
      const double height = std::max(1.0, 2 * kHalfBar * bar.height);
      const auto tint = static_cast<size_t>(bar.tint);
      if (bar.tip.empty()) {
        rest[tint] += rect_path(x, y + kHalfBar - height, width, height);
      } else {
        canvas_.rect(x, y + kHalfBar - height, width, height, kClasses[tint], bar.tip);
      }
    }
    for (size_t tint = 0; tint < rest.size(); ++tint) {
      if (!rest[tint].empty()) canvas_.path(rest[tint], kClasses[tint]);
    }
  }

  void draw_line(const RowLine& line, double y) {
    canvas_.open_group(style_class(line.style), line.tip);
    draw_bars(line, y);
    if (line.interval) {
      canvas_.path(fmt::format("M{} {}v6m0 -3H{}m0 -3v6", coordinate(x_of(line.interval->low)),
                               coordinate(y - 3), coordinate(x_of(line.interval->high))),
                   "i");
    }
    for (const SmallMark& small : line.small) {
      canvas_.path(shape_path(x_of(small.value), y, line.style, 2), shape_class(line.style),
                   small.tip);
    }
    if (line.value)
      canvas_.path(shape_path(x_of(*line.value), y, line.style, 4), shape_class(line.style));
    if (!line.value && line.bars.empty()) {
      // The arm's mark before the text, if no value is drawn.
      const double text_width = static_cast<double>(characters(line.text)) * kValueCharacter;
      canvas_.path(shape_path(kPanelWidth - text_width - 8, y, line.style, 3),
                   shape_class(line.style));
    }
    canvas_.close_group();
    if (!line.text.empty()) texts_.text(kPanelWidth, y + 3.5, Anchor::kStart, "", line.text);
  }

  const RowsPanel& panel_;
  const Scale& scale_;
  double right_;
  double bottom_ = 0;
  Canvas canvas_;
  Canvas texts_;  // of the lines, in a group of their own
};

// Leaves out values without a place: a figure that couldn't be computed is no number, and isn't
// drawn.
RowsPanel placed(RowsPanel panel) {
  const auto lacks_place = [](const Span& span) {
    return std::isnan(span.low) || std::isnan(span.high);
  };
  if (panel.rule && std::isnan(panel.rule->value)) panel.rule.reset();
  for (PlotRow& row : panel.rows) {
    for (RowLine& line : row.lines) {
      if (line.value && std::isnan(*line.value)) line.value.reset();
      if (line.interval && lacks_place(*line.interval)) line.interval.reset();
      std::erase_if(line.bars, [&](const Bar& bar) { return lacks_place(bar.span); });
      std::erase_if(line.small, [](const SmallMark& small) { return std::isnan(small.value); });
    }
  }
  return panel;
}

}  // namespace

size_t value_columns(const RowsPanel& panel) {
  size_t longest = 0;
  for (const PlotRow& row : panel.rows) {
    for (const RowLine& line : row.lines) longest = std::max(longest, characters(line.text));
  }
  return std::min(longest, kValueColumns);
}

void add_extent(const RowsPanel& panel, Extent& extent) {
  const auto add = [&](const Span& span) {
    extent.add(span.low);
    extent.add(span.high);
  };
  if (panel.rule) extent.add(panel.rule->value);
  for (const PlotRow& row : panel.rows) {
    for (const RowLine& line : row.lines) {
      if (line.value) extent.add(*line.value);
      if (line.interval) add(*line.interval);
      for (const Bar& bar : line.bars) add(bar.span);
      for (const SmallMark& small : line.small) extent.add(small.value);
    }
  }
}

Panel draw(const RowsPanel& panel, const Scale& scale) {
  const RowsPanel drawn = placed(panel);
  return RowsDrawing(drawn, scale).draw();
}

}  // namespace assay::plot
