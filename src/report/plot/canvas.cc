#include "report/plot/canvas.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/records/enum_words.h"
#include "base/text/shown_text.h"
#include "report/plot/theme.h"

namespace assay::plot {
namespace {

constexpr size_t kShapes = 6;

// Classes of the theme.
std::string_view anchor_class(Anchor anchor) {
  return word_of(anchor, {"", "c", "e"});
}

std::string circle_path(double x, double y, double radius) {
  // One arc from its top to a tenth of a pixel beside it.
  const std::string r = coordinate(radius);
  return fmt::format("M{} {}a{} {} 0 1 0 .1 0z", coordinate(x), coordinate(y - radius), r, r);
}

std::string triangle_path(double x, double y, double size, bool up) {
  const double sign = up ? 1 : -1;
  return fmt::format("M{} {}l{} {}h-{}z", coordinate(x), coordinate(y - sign * size),
                     coordinate(size), coordinate(sign * 1.8 * size), coordinate(2 * size));
}

std::string diamond_path(double x, double y, double size) {
  const std::string s = coordinate(size);
  return fmt::format("M{} {}l{} {}l-{} {}l-{} -{}z", coordinate(x), coordinate(y - size), s, s, s,
                     s, s, s);
}

std::string hourglass_path(double x, double y, double size) {
  const std::string across = coordinate(2 * size);
  const std::string down = coordinate(2.4 * size);
  return fmt::format("M{} {}h{}l-{} {}h{}z", coordinate(x - size), coordinate(y - 1.2 * size),
                     across, across, down, across);
}

}  // namespace

std::string coordinate(double value) {
  const auto tenths = static_cast<long long>(std::llround(value * 10));
  const char* sign = tenths < 0 ? "-" : "";
  const long long size = std::abs(tenths);
  if (size % 10 == 0) return fmt::format("{}{}", sign, size / 10);
  const std::string whole = size < 10 ? "" : std::to_string(size / 10);
  return fmt::format("{}{}.{}", sign, whole, size % 10);
}

std::string shape_path(double x, double y, Style style, double size) {
  switch (style.number % kShapes) {
    case 0:
      return circle_path(x, y, size);
    case 1: {
      const std::string across = coordinate(1.8 * size);
      return fmt::format("M{} {}h{}v{}h-{}z", coordinate(x - 0.9 * size),
                         coordinate(y - 0.9 * size), across, across, across);
    }
    case 2:
      return triangle_path(x, y, 1.2 * size, true);
    case 3:
      return hourglass_path(x, y, size);
    case 4:
      return triangle_path(x, y, 1.2 * size, false);
    default: {  // a bar that stands
      const std::string width = coordinate(size);
      return fmt::format("M{} {}h{}v{}h-{}z", coordinate(x - size / 2), coordinate(y - 1.3 * size),
                         width, coordinate(2.6 * size), width);
    }
  }
}

void DotsPath::add(double x, double y) {
  struct Stroke {
    double from_x = 0;
    double from_y = 0;
    double to_x = 0;
    double to_y = 0;
    std::string_view d;
  };
  static constexpr std::array<Stroke, kShapes> kStrokes = {{{0, 0, 0, 0, "h0"},
                                                            {0, -1, 0, 1, "v2"},
                                                            {-1, 0, 1, 0, "h2"},
                                                            {-1, -1, 1, 1, "l2 2"},
                                                            {-1, 1, 1, -1, "l2-2"},
                                                            {0, -1.5, 0, 1.5, "v3"}}};
  const Stroke& stroke = kStrokes[style_.number % kShapes];
  // The place as it was written, so that rounding doesn't add up.
  const double at_x = std::round(x) + stroke.from_x;
  const double at_y = std::round(y + stroke.from_y);
  const std::string across = coordinate(at_x - end_x_);
  const std::string down = coordinate(at_y - end_y_);
  d_ += d_.empty() ? 'M' : 'm';
  d_ += across;
  if (!down.starts_with('-')) d_ += ' ';
  d_ += down;
  d_ += stroke.d;
  end_x_ = at_x + stroke.to_x - stroke.from_x;
  end_y_ = at_y + stroke.to_y - stroke.from_y;
}

std::string rect_path(double x, double y, double width, double height) {
  return fmt::format("M{} {}h{}v{}h-{}z", coordinate(x), coordinate(y), coordinate(width),
                     coordinate(height), coordinate(width));
}

std::string around_path(double x, double y, double size, Around around) {
  switch (around) {
    case Around::kRing:
      return circle_path(x, y, size);
    case Around::kDiamond:
      return diamond_path(x, y, size * 1.3);
    case Around::kUnderline:
      return fmt::format("M{} {}h{}", coordinate(x - size), coordinate(y + size),
                         coordinate(2 * size));
    case Around::kCross: {
      const std::string across = coordinate(2 * size);
      return fmt::format("M{} {}l{} {}m0 -{}l-{} {}", coordinate(x - size), coordinate(y - size),
                         across, across, across, across, across);
    }
    case Around::kNothing:
      break;
  }
  return "";
}

std::string style_class(Style style) {
  return fmt::format("a{}", style.number % kColours);
}

bool is_hollow(Style style) {
  return style.number / kColours % 2 == 1;
}

std::string_view shape_class(Style style) {
  return is_hollow(style) ? "h" : "f";
}

std::string line_class(Style style) {
  return fmt::format("a{} d{}", style.number % kColours, style.number % kDashes);
}

std::string panel_svg(const Panel& panel) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
      coordinate(panel.width), coordinate(panel.height), html_text(panel.alt), panel.body);
}

void Canvas::text(double x, double y, Anchor anchor, std::string_view classes,
                  std::string_view text) {
  std::string all(classes);
  const std::string_view about = anchor_class(anchor);
  if (!all.empty() && !about.empty()) all += ' ';
  all += about;
  out_ += "<text";
  if (!all.empty()) fmt::format_to(std::back_inserter(out_), " class=\"{}\"", all);
  if (const auto place = std::llround(x); place != 0) {
    fmt::format_to(std::back_inserter(out_), " x=\"{}\"", place);
  }
  fmt::format_to(std::back_inserter(out_), " y=\"{}\">{}</text>", std::llround(y), html_text(text));
}

void Canvas::close_with_tip(std::string_view tip) {
  if (tip.empty()) {
    out_ += "/>";
    return;
  }
  fmt::format_to(std::back_inserter(out_), "><title>{}</title></path>", html_text(tip));
}

void Canvas::path(std::string_view d, std::string_view classes, std::string_view tip) {
  fmt::format_to(std::back_inserter(out_), "<path d=\"{}\"", d);
  if (!classes.empty()) fmt::format_to(std::back_inserter(out_), " class=\"{}\"", classes);
  close_with_tip(tip);
}

void Canvas::rect(double x, double y, double width, double height, std::string_view classes,
                  std::string_view tip) {
  path(rect_path(x, y, width, height), classes, tip);
}

void Canvas::mark(double x, double y, Style style, double size, Around around,
                  std::string_view tip) {
  const std::string shape = shape_path(x, y, style, size);
  const std::string colour = style_class(style);
  const std::string filled(shape_class(style));
  if (around == Around::kNothing) return path(shape, filled + " " + colour, tip);
  if (around == Around::kCross) {
    const std::string cross = around_path(x, y, size * 1.4, around);
    if (tip.empty()) return path(cross, "x " + colour);
    // Thin strokes are hard to hit: a pointer over the square about them counts.
    const double half = size * 1.4 + 1;
    open_group(colour, tip);
    path(rect_path(x - half, y - half, 2 * half, 2 * half), "p");
    path(cross, "x");
    return close_group();
  }
  open_group(colour, tip);
  path(shape, filled);
  path(around_path(x, y, size + 2, around), "o");
  close_group();
}

void Canvas::open_group(std::string_view classes, std::string_view tip) {
  fmt::format_to(std::back_inserter(out_), "<g class=\"{}\">", classes);
  if (!tip.empty()) {
    fmt::format_to(std::back_inserter(out_), "<title>{}</title>", html_text(tip));
  }
}

void Canvas::close_group() {
  out_ += "</g>";
}

}  // namespace assay::plot
