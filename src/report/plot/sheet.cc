#include "report/plot/sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/plot/theme.h"

namespace assay::plot {
namespace {

constexpr double kMargin = 12;
constexpr double kGap = 24;
constexpr double kCharacter = 6.8;
constexpr double kLineHeight = 16;
constexpr size_t kMostColumns = 3;
constexpr size_t kLongestText = 4000;

std::vector<std::string> wrapped(const std::string& text, size_t columns) {
  std::vector<std::string> lines(1);
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > columns) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

// Draws below the parts that are there, in a sheet of that width.
class SheetDrawing {
 public:
  explicit SheetDrawing(double width) : width_(width) {}

  void add_text(const std::string& text, const char* classes) {
    const auto columns = static_cast<size_t>((width_ - 2 * kMargin) / kCharacter);
    for (const std::string& line : wrapped(text, columns)) {
      canvas_.text(kMargin, y_ + 12, Anchor::kStart, classes, line);
      y_ += kLineHeight;
    }
    y_ += 4;
  }

  void add_legend(const std::vector<LegendEntry>& legend) {
    if (legend.empty()) return;
    double x = kMargin;
    for (const LegendEntry& entry : legend) {
      const double needed = 44 + static_cast<double>(entry.name.size()) * kCharacter;
      if (x > kMargin && x + needed > width_) {
        x = kMargin;
        y_ += kLineHeight;
      }
      body_ += fmt::format("<g transform=\"translate({} {})\">{}</g>", coordinate(x),
                           coordinate(y_), legend_mark(entry));
      canvas_.text(x + 28, y_ + 10, Anchor::kStart, "v", entry.name);
      x += needed;
    }
    y_ += kLineHeight + 8;
  }

  void add_panels(const std::vector<Panel>& panels, size_t columns) {
    for (size_t first = 0; first < panels.size(); first += columns) {
      double height = 0;
      double x = kMargin;
      for (size_t i = first; i < std::min(first + columns, panels.size()); ++i) {
        const Panel& panel = panels[i];
        body_ +=
            fmt::format("<g transform=\"translate({} {})\" role=\"img\" aria-label=\"{}\">{}</g>",
                        coordinate(x), coordinate(y_), html_text(panel.alt), panel.body);
        x += panel.width + kGap;
        height = std::max(height, panel.height);
      }
      y_ += height + kGap / 2;
    }
  }

  double height() const { return y_ + kMargin; }
  std::string take() { return canvas_.take() + body_; }

 private:
  double width_;
  double y_ = kMargin;
  Canvas canvas_;
  std::string body_;
};

}  // namespace

std::string legend_mark(const LegendEntry& entry) {
  Canvas canvas;
  switch (entry.sample) {
    case Sample::kMarkedLine:
      canvas.path("M1 6H21", "l " + line_class(entry.style));
      [[fallthrough]];
    case Sample::kMark:
      canvas.mark(11, 6, entry.style, 4, Around::kNothing, "");
      break;
    case Sample::kSmallMark:
      canvas.mark(11, 6, entry.style, 2, Around::kNothing, "");
      break;
    case Sample::kRemark:
      canvas.mark(11, 6, entry.style, 2, entry.around, "");
      break;
    case Sample::kLightBar:
      canvas.rect(2, 2, 18, 8, "b2");
      break;
    case Sample::kOutlineBar:
      canvas.rect(2, 2, 18, 8, "b3");
      break;
    case Sample::kRule:
      canvas.path("M11 0V12", "r");
      break;
  }
  return fmt::format(
      "<svg class=\"plot\" width=\"22\" height=\"12\" viewBox=\"0 0 22 12\" "
      "aria-hidden=\"true\">{}</svg>",
      canvas.take());
}

std::string sheet(const std::string& title, const std::string& caption,
                  const std::vector<LegendEntry>& legend, const std::vector<Panel>& panels) {
  const size_t columns = std::clamp<size_t>(panels.size(), 1, kMostColumns);
  const double width = 2 * kMargin + static_cast<double>(columns) * (kPanelWidth + kGap) - kGap;
  SheetDrawing drawing(width);
  drawing.add_text(title, "t");
  drawing.add_legend(legend);
  drawing.add_panels(panels, columns);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\"><title>{2}</title><desc>{3}</desc><style>{4}"
      ".paper{{fill:var(--paper)}}</style><path class=\"paper\" d=\"M0 0H{0}V{1}H0z\"/>{5}</svg>\n",
      coordinate(width), coordinate(drawing.height()), html_text(title, kLongestText),
      html_text(caption, kLongestText), theme_css(), drawing.take());
}

}  // namespace assay::plot
