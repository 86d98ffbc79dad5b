// SVG text, element by element, and the type of a drawn panel.
//
// Colours, widths and fonts are classes (theme.h), so that one panel serves light and dark, the
// page and a file of its own. Coordinates are in the panel's units: one is a CSS pixel where the
// panel is as wide as kPanelWidth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plot {

inline constexpr double kPanelWidth = 340;
// Characters that fit a panel's title, a row's label (or an axis'), and the text behind a line:
// whoever makes these shortens them.
inline constexpr size_t kTitleColumns = 46;
inline constexpr size_t kLabelColumns = 50;
inline constexpr size_t kValueColumns = 30;

// Style of a report's arm, by its number: a colour, a shape and a dash. From the second round of
// colours on, marks are hollow.
struct Style {
  size_t number = 0;
};

// Part of a figure, drawn: `body` is what stands within its <svg> element.
struct Panel {
  double width = kPanelWidth;
  double height = 0;
  std::string alt;  // its content in words, for those who can't see it
  std::string body;
};

// The panel as an element of HTML, or as the content of an .svg file without styles.
std::string panel_svg(const Panel& panel);

// Drawn about a mark, whose own shape is its arm's: a remark on one row. No arm has such a shape.
enum class Around { kNothing, kRing, kDiamond, kUnderline, kCross };

// The text's point that lies at its place.
enum class Anchor { kStart, kMiddle, kEnd };

// Text goes through html_text() (base/text/shown_text.h) here and nowhere else. A `tip` is shown
// where a pointer rests; empty: none.
class Canvas {
 public:
  // Empty classes: the text has those of its group. Its place is rounded to whole pixels.
  void text(double x, double y, Anchor anchor, std::string_view classes, std::string_view text);
  // `d` is path data; the classes say whether it is stroked or filled.
  void path(std::string_view d, std::string_view classes, std::string_view tip = {});
  void rect(double x, double y, double width, double height, std::string_view classes,
            std::string_view tip = {});
  // A mark of that style, with its outline.
  void mark(double x, double y, Style style, double size, Around around, std::string_view tip);
  // Until close_group(): the classes and the tip that all of them have.
  void open_group(std::string_view classes, std::string_view tip = {});
  void close_group();
  std::string take() { return std::move(out_); }

 private:
  void close_with_tip(std::string_view tip);
  std::string out_;
};

// One decimal: a tenth of a pixel.
std::string coordinate(double value);
// Path data of a mark's shape, centred, and the classes of its style: "a2", and "f" or "h".
std::string shape_path(double x, double y, Style style, double size);
std::string rect_path(double x, double y, double width, double height);
// Outline around a mark, to be stroked (class o).
std::string around_path(double x, double y, double size, Around around);
std::string style_class(Style style);
std::string_view shape_class(Style style);
bool is_hollow(Style style);
// "a2 d1": the classes of a line, which has a dash as well.
std::string line_class(Style style);

// Thousands of small marks of one style, each in few characters: to whole pixels.
class DotsPath {
 public:
  explicit DotsPath(Style style) : style_(style) {}
  void add(double x, double y);
  const std::string& d() const { return d_; }  // to be stroked (class s)

 private:
  Style style_;
  std::string d_;
  double end_x_ = 0;
  double end_y_ = 0;
};

}  // namespace assay::plot
