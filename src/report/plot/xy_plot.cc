#include "report/plot/xy_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::plot {
namespace {

constexpr double kTop = 40;  // title, then the label of the y axis
constexpr double kPlotHeight = 150;
constexpr double kAxisHeight = 37;
constexpr double kRight = kPanelWidth - 8;
constexpr double kTickCharacter = 6.2;
constexpr double kDot = 1.6;
constexpr double kMark = 3;
constexpr size_t kXTicks = 6;
constexpr size_t kYTicks = 6;

Scale x_scale(const XyPanel& panel) {
  Extent extent;
  for (const Series& series : panel.series) {
    for (const Point& point : series.points) extent.add(point.x);
    for (const Mark& mark : series.marks) extent.add(mark.x);
  }
  return Scale::of(extent, panel.x_start);
}

Scale y_scale(const XyPanel& panel) {
  Extent extent;
  if (panel.y_rule) extent.add(panel.y_rule->value);
  for (const Series& series : panel.series) {
    for (const Point& point : series.points) extent.add(point.y);
    for (const Mark& mark : series.marks) {
      if (!mark.on_top_edge) extent.add(mark.y);
      if (mark.y_interval) {
        extent.add(mark.y_interval->low);
        extent.add(mark.y_interval->high);
      }
    }
  }
  return Scale::of(extent, panel.y_start);
}

class XyDrawing {
 public:
  explicit XyDrawing(const XyPanel& panel)
      : panel_(panel), x_(x_scale(panel)), y_(y_scale(panel)), y_ticks_(y_.ticks(kYTicks)) {
    size_t longest = 1;
    for (const Tick& tick : y_ticks_) longest = std::max(longest, tick.text.size());
    left_ = 6 + static_cast<double>(longest) * kTickCharacter;
  }

  Panel draw() {
    canvas_.text(0, 12, Anchor::kStart, "t", panel_.title);
    draw_axes();
    for (const Series& series : panel_.series) draw_points(series);
    for (const Series& series : panel_.series) draw_marks(series);
    return {kPanelWidth, bottom() + kAxisHeight, panel_.alt, canvas_.take()};
  }

 private:
  static double bottom() { return kTop + kPlotHeight; }
  double x_of(double value) const { return left_ + x_.at(value) * (kRight - left_); }
  double y_of(double value) const { return bottom() - y_.at(value) * kPlotHeight; }

  void draw_axes() {
    // Not in one expression: compilers differ in which of two operands draws its labels first.
    const std::string upright = draw_x_ticks();
    canvas_.path(draw_y_ticks() + upright, "g");
    draw_rules();
    const auto with_scale = [](const std::string& label, const Scale& scale) {
      return label + (scale.logarithmic() ? ", log scale" : "");
    };
    canvas_.text(0, 27, Anchor::kStart, "n", with_scale(panel_.y_label, y_));
    canvas_.text(kRight, bottom() + 30, Anchor::kEnd, "n", with_scale(panel_.x_label, x_));
  }

  // Their labels; gives the lines of the grid.
  std::string draw_y_ticks() {
    std::string grid;
    canvas_.open_group("n e");
    for (const Tick& tick : y_ticks_) {
      const double y = y_of(tick.value);
      grid += fmt::format("M{} {}H{}", coordinate(left_), coordinate(y), coordinate(kRight));
      canvas_.text(left_ - 4, y + 3.5, Anchor::kStart, "", tick.text);
    }
    canvas_.close_group();
    return grid;
  }

  std::string draw_x_ticks() {
    std::string grid;
    double last_end = 0;
    canvas_.open_group("n c");
    for (const Tick& tick : x_.ticks(kXTicks)) {
      const double x = x_of(tick.value);
      grid += fmt::format("M{} {}V{}", coordinate(x), coordinate(kTop), coordinate(bottom()));
      const double half = static_cast<double>(tick.text.size()) * kTickCharacter / 2;
      if (x - half < last_end || x + half > kPanelWidth) continue;
      last_end = x + half + 4;
      canvas_.text(x, bottom() + 16, Anchor::kStart, "", tick.text);
    }
    canvas_.close_group();
    return grid;
  }

  void draw_rules() {
    if (panel_.y_rule) {
      canvas_.path(fmt::format("M{} {}H{}", coordinate(left_),
                               coordinate(y_of(panel_.y_rule->value)), coordinate(kRight)),
                   "r", panel_.y_rule->label);
    }
    if (panel_.x_rule) {
      canvas_.path(fmt::format("M{} {}V{}", coordinate(x_of(panel_.x_rule->value)),
                               coordinate(kTop), coordinate(bottom())),
                   "r", panel_.x_rule->label);
    }
  }

  void draw_points(const Series& series) {
    if (series.join == Join::kNone) {
      draw_dots(series);
    } else if (!series.points.empty()) {
      canvas_.path(joined(series), "l " + line_class(series.style), series.name);
    }
  }

  std::string joined(const Series& series) const {
    if (series.join == Join::kSteps) return steps(series);
    std::string d;
    for (const Point& point : series.points) {
      d += fmt::format("{}{} {}", d.empty() ? 'M' : 'L', coordinate(x_of(point.x)),
                       coordinate(y_of(point.y)));
    }
    return d;
  }

  // Relative to the step before, in whole tenths of a pixel across and whole pixels up, so that
  // nothing adds up; steps that end at one place are one.
  std::string steps(const Series& series) const {
    const auto across = [&](const Point& point) { return std::round(x_of(point.x) * 10); };
    const auto up = [&](const Point& point) { return std::round(y_of(point.y)); };
    double x = across(series.points.front());
    double y = up(series.points.front());
    std::string d = fmt::format("M{} {}", coordinate(x / 10), coordinate(y));
    for (size_t i = 1; i < series.points.size(); ++i) {
      const double next = across(series.points[i]);
      const bool goes_on = i + 1 < series.points.size() && across(series.points[i + 1]) == next;
      if (goes_on) continue;
      const double top = up(series.points[i]);
      if (next != x) d += "h" + coordinate((next - x) / 10);
      if (top != y) d += "v" + coordinate(top - y);
      x = next;
      y = top;
    }
    return d;
  }

  // Those without a tip are one element.
  void draw_dots(const Series& series) {
    DotsPath rest(series.style);
    for (const Point& point : series.points) {
      const double x = x_of(point.x);
      const double y = y_of(point.y);
      if (point.tip.empty()) {
        rest.add(x, y);
      } else {
        canvas_.path(shape_path(x, y, series.style, kDot),
                     fmt::format("q {} {}", shape_class(series.style), style_class(series.style)),
                     point.tip);
      }
    }
    draw_together(series, {}, rest, {});
  }

  // Draws marks of one style and with one tip: shapes, small marks, and outlines around some of
  // them.
  void draw_together(const Series& series, const std::string& shapes, const DotsPath& dots,
                     const std::string& outlines) {
    std::vector<std::pair<const std::string*, std::string>> paths;
    if (!shapes.empty()) paths.emplace_back(&shapes, shape_class(series.style));
    if (!dots.d().empty()) paths.emplace_back(&dots.d(), "s");
    if (!dots.d().empty() && is_hollow(series.style)) paths.emplace_back(&dots.d(), "u");
    if (!outlines.empty()) paths.emplace_back(&outlines, "o");
    // A line has the name already.
    static const std::string kNone;
    const std::string& name = series.join == Join::kNone ? series.name : kNone;
    const std::string colour = style_class(series.style);
    if (paths.size() == 1)
      return canvas_.path(*paths[0].first, paths[0].second + " " + colour, name);
    if (paths.empty()) return;
    canvas_.open_group(colour, name);
    for (const auto& [d, classes] : paths) canvas_.path(*d, classes);
    canvas_.close_group();
  }

  // Marks without a tip are one element a kind.
  void draw_marks(const Series& series) {
    std::string shapes;
    DotsPath dots(series.style);
    std::string outlines;
    for (const Mark& mark : series.marks) {
      const double x = x_of(mark.x);
      const double y = mark.on_top_edge ? kTop + 5 : y_of(mark.y);
      if (mark.y_interval) {
        canvas_.path(fmt::format("M{} {}V{}", coordinate(x), coordinate(y_of(mark.y_interval->low)),
                                 coordinate(y_of(mark.y_interval->high))),
                     "i " + style_class(series.style));
      }
      if (mark.size == MarkSize::kNone) {
        canvas_.path(rect_path(x - kMark, y - kMark, 2 * kMark, 2 * kMark), "p", mark.tip);
        continue;
      }
      if (!mark.tip.empty() || mark.around == Around::kCross) {
        const double size = mark.size == MarkSize::kSmall ? kDot : kMark;
        canvas_.mark(x, y, series.style, size, mark.around, mark.tip);
        continue;
      }
      if (mark.around == Around::kNothing) {
        shapes += shape_path(x, y, series.style, kMark);
      } else {
        dots.add(x, y);
      }
      outlines += around_path(std::round(x), y, kMark + 1, mark.around);
    }
    draw_together(series, shapes, dots, outlines);
  }

  const XyPanel& panel_;
  Scale x_;
  Scale y_;
  std::vector<Tick> y_ticks_;
  double left_ = 0;
  Canvas canvas_;
};

// Leaves out values without a place, as rows_plot.cc does.
XyPanel placed(XyPanel panel) {
  if (panel.x_rule && std::isnan(panel.x_rule->value)) panel.x_rule.reset();
  if (panel.y_rule && std::isnan(panel.y_rule->value)) panel.y_rule.reset();
  for (Series& series : panel.series) {
    std::erase_if(series.points,
                  [](const Point& point) { return std::isnan(point.x) || std::isnan(point.y); });
    std::erase_if(series.marks, [](const Mark& mark) {
      return std::isnan(mark.x) || (!mark.on_top_edge && std::isnan(mark.y));
    });
    for (Mark& mark : series.marks) {
      const auto& y = mark.y_interval;
      if (y && (std::isnan(y->low) || std::isnan(y->high))) mark.y_interval.reset();
    }
  }
  return panel;
}

}  // namespace

Panel draw(const XyPanel& panel) {
  const XyPanel drawn = placed(panel);
  return XyDrawing(drawn).draw();
}

}  // namespace assay::plot
