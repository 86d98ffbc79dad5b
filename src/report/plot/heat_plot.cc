#include "report/plot/heat_plot.h"

#include <algorithm>

namespace assay::plot {
namespace {

constexpr double kHeatTop = 40;
constexpr double kHeatLabel = 15;
constexpr double kHeatField = 20;
constexpr double kHeatGap = 5;
constexpr double kHeatSpace = 2;  // between fields
constexpr Style kGood{3};         // green and orange, which colour-blind readers tell apart
constexpr Style kBad{2};

std::string field_classes(const HeatField& field) {
  const std::string colour = style_class(field.good ? kGood : kBad);
  switch (field.heat) {
    case Heat::kFaint:
      return colour + " b2";
    case Heat::kMiddle:
      return colour + " b";
    case Heat::kStrong:
      return colour + " f";
    case Heat::kNone:
      break;
  }
  return "g";
}

// Text on a strong green is as light as the paper is dark; on orange it is dark on any paper.
std::string_view text_classes(const HeatField& field) {
  if (field.heat != Heat::kStrong) return "v k";
  return field.good ? "v k kg" : "v k kb";
}

}  // namespace

Panel draw(const HeatPanel& panel) {
  Canvas canvas;
  canvas.text(0, 12, Anchor::kStart, "t", panel.title);
  const double step = kPanelWidth / static_cast<double>(std::max<size_t>(panel.columns.size(), 1));
  for (size_t c = 0; c < panel.columns.size(); ++c) {
    canvas.text((static_cast<double>(c) + 0.5) * step, kHeatTop - 8, Anchor::kMiddle, "n",
                panel.columns[c]);
  }
  double y = kHeatTop;
  for (const HeatRow& row : panel.rows) {
    canvas.text(0, y + 10, Anchor::kStart, "m", row.label);
    y += kHeatLabel;
    for (size_t c = 0; c < row.fields.size(); ++c) {
      const HeatField& field = row.fields[c];
      const double x = static_cast<double>(c) * step;
      canvas.rect(x + kHeatSpace / 2, y, step - kHeatSpace, kHeatField, field_classes(field),
                  field.tip);
      canvas.text(x + step / 2, y + kHeatField / 2 + 4, Anchor::kMiddle, text_classes(field),
                  field.text.empty() ? "-" : field.text);
    }
    y += kHeatField + kHeatGap;
  }
  return {kPanelWidth, y + 4, panel.alt, canvas.take()};
}

}  // namespace assay::plot
