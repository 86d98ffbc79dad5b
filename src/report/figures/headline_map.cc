// The headline matrix as a heat map.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/add_once.h"
#include "base/text/fit_text.h"
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/fitting.h"
#include "report/judgements/portability_report.h"
#include "report/judgements/portability_tables.h"
#include "report/plot/heat_plot.h"
#include "report/plot/sheet.h"

namespace assay {
namespace {

// Rows and columns of the map, and its fields.
struct HeadlineGrid {
  std::vector<std::pair<size_t, std::string>> rows;  // regime and arm
  std::vector<std::string> classes;
  std::map<std::pair<size_t, size_t>, const HeadlineCell*> at;  // row, class
};

HeadlineGrid headline_grid(const Portability& of) {
  HeadlineGrid grid;
  for (const HeadlineCell& cell : of.matrix) {
    const size_t row = place_once(grid.rows, {cell.regime, cell.arm});
    const size_t column = place_once(grid.classes, cell.model_class);
    grid.at[{row, column}] = &cell;
  }
  return grid;
}

plot::Heat heat_of(double size, double faint, double middle, double strong) {
  if (size >= strong) return plot::Heat::kStrong;
  if (size >= middle) return plot::Heat::kMiddle;
  return size >= faint ? plot::Heat::kFaint : plot::Heat::kNone;
}

plot::HeatField gain_field(const HeadlineCell& cell) {
  if (!cell.prefill_gain) return {"", "no prompt length can be compared", plot::Heat::kNone, true};
  const double gain = *cell.prefill_gain;
  std::string tip = fmt::format("gain {}", gain_text(gain));
  if (cell.gain_interval) {
    tip += fmt::format(" [{}, {}]", gain_text(cell.gain_interval->low),
                       gain_text(cell.gain_interval->high));
  } else if (cell.gain_range) {
    tip += fmt::format(" range {} to {}", gain_text(cell.gain_range->low),
                       gain_text(cell.gain_range->high));
  }
  return {fmt::format("{:+.0f} %", std::round(gain * 100) + 0.0), tip,
          heat_of(std::abs(gain), 0.02, 0.1, 0.3), gain > 0};
}

plot::HeatField crash_field(const HeadlineCell& cell) {
  if (!cell.decode_crashes || cell.decode_crashes->attempted == 0) {
    return {"", "no decode was attempted", plot::Heat::kNone, true};
  }
  const CrashRate& crashes = *cell.decode_crashes;
  const double rate = static_cast<double>(crashes.lost) / static_cast<double>(crashes.attempted);
  std::string tip = fmt::format("lost {} rows", lost_of_text(crashes));
  if (crashes.interval) {
    tip += fmt::format(" [{}, {}]", gain_text(crashes.interval->low),
                       gain_text(crashes.interval->high));
  }
  const double faint = crashes.lost > 0 ? 0.0 : 1.0;
  return {fmt::format("{:.0f} %", rate * 100), tip, heat_of(rate, faint, 0.05, 0.5), false};
}

// Panels of at most kMostHeatColumns classes each.
void add_panels(const Portability& of, const HeadlineGrid& grid, bool gains,
                std::vector<plot::Panel>& panels) {
  const std::string what = gains ? "Prefill gain" : "Rows lost in decode";
  for (size_t first = 0; first < grid.classes.size(); first += plot::kMostHeatColumns) {
    const size_t end = std::min(first + plot::kMostHeatColumns, grid.classes.size());
    plot::HeatPanel panel;
    panel.title = what;
    panel.alt =
        fmt::format("{}: {} rows of bundles and arms by {}", what, grid.rows.size(),
                    counted(static_cast<int64_t>(end - first), "model class", "model classes"));
    for (size_t c = first; c < end; ++c) {
      const size_t room = plot::kHeatColumnLabel * plot::kMostHeatColumns / (end - first);
      panel.columns.push_back(shortened(grid.classes[c], room));
    }
    for (size_t r = 0; r < grid.rows.size(); ++r) {
      plot::HeatRow row;
      row.label =
          shortened(fmt::format("{}: {}", of.regimes[grid.rows[r].first].name, grid.rows[r].second),
                    plot::kLabelColumns);
      for (size_t c = first; c < end; ++c) {
        const auto at = grid.at.find({r, c});
        row.fields.push_back(at == grid.at.end() ? plot::HeatField{"", "not measured", {}, true}
                             : gains             ? gain_field(*at->second)
                                                 : crash_field(*at->second));
      }
      panel.rows.push_back(std::move(row));
    }
    panels.push_back(draw(panel));
  }
}

// "+20 %", "-3.2 %".
std::string signed_percent(double share) {
  return fmt::format("{}{} %", share < 0 ? "-" : "+", percent_text(std::abs(share)));
}

// The arm and class of models whose gain differs most from bundle to bundle.
std::string gains_finding(const Portability& of) {
  struct GainSpan {
    const HeadlineCell* low = nullptr;
    const HeadlineCell* high = nullptr;
    double width() const { return *high->prefill_gain - *low->prefill_gain; }
  };
  std::map<std::pair<std::string, std::string>, GainSpan> spans;  // by arm and class
  for (const HeadlineCell& cell : of.matrix) {
    if (!cell.prefill_gain) continue;
    GainSpan& span = spans[{config_text(cell.config), cell.model_class}];
    if (!span.low || *cell.prefill_gain < *span.low->prefill_gain) span.low = &cell;
    if (!span.high || *cell.prefill_gain > *span.high->prefill_gain) span.high = &cell;
  }
  if (spans.empty()) return "No prefill gain can be compared";
  const GainSpan& widest = std::ranges::max_element(spans, {}, [](const auto& one) {
                             return one.second.width();
                           })->second;
  const auto in = [&](const HeadlineCell& cell) {
    return fmt::format("{} in {}", signed_percent(*cell.prefill_gain),
                       of.regimes[cell.regime].name);
  };
  std::string text = fmt::format("{}'s gain in the prefill of {} is {}", widest.high->arm,
                                 widest.high->model_class, in(*widest.high));
  if (widest.low == widest.high) return text;
  return fmt::format("{} and {}{}", text, in(*widest.low),
                     spans.size() > 1 ? ", the widest range of an arm" : "");
}

std::string losses_finding(const Portability& of) {
  const HeadlineCell* most = nullptr;
  bool attempted = false;
  const auto rate = [](const HeadlineCell& cell) {
    return static_cast<double>(cell.decode_crashes->lost) /
           static_cast<double>(cell.decode_crashes->attempted);
  };
  for (const HeadlineCell& cell : of.matrix) {
    if (!cell.decode_crashes || cell.decode_crashes->attempted == 0) continue;
    attempted = true;
    if (cell.decode_crashes->lost == 0) continue;
    if (most == nullptr || rate(cell) > rate(*most)) most = &cell;
  }
  if (!attempted) return "decode was not measured";
  if (most == nullptr) return "no row was lost in decode";
  return fmt::format("in decode {} lost {} rows of {} in {}, the largest share", most->arm,
                     lost_of_text(*most->decode_crashes), most->model_class,
                     of.regimes[most->regime].name);
}

}  // namespace

Figure headline_figure(const Portability& of) {
  Figure figure;
  figure.id = "headline";
  figure.finding = fmt::format("{}; {}", gains_finding(of), losses_finding(of));
  figure.caption =
      "One field for each bundle, arm and class of models. "
      "Green: faster than the baseline; orange: slower, or rows lost. The tint is stronger from "
      "2, 10 and 30 % of gain on, and from the first, 5 and 50 % of lost rows on. A dash: not "
      "measured, or not comparable.";
  const HeadlineGrid grid = headline_grid(of);
  const auto any = [&](const auto& has) { return std::ranges::any_of(of.matrix, has); };
  if (any([](const HeadlineCell& cell) { return cell.prefill_gain.has_value(); })) {
    add_panels(of, grid, true, figure.panels);
  }
  // The finding says it where no row was lost.
  if (any([](const auto& cell) { return cell.decode_crashes && cell.decode_crashes->lost > 0; })) {
    add_panels(of, grid, false, figure.panels);
  }
  figure.tables.push_back(headline_table(of));
  return figure;
}

std::string portability_heat_map(const Portability& of) {
  const Figure figure = headline_figure(of);
  return plot::sheet(figure.finding, figure.caption, figure.legend, figure.panels);
}

}  // namespace assay
