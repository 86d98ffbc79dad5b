// The headline matrix as a heat map.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/fit_text.h"
#include "base/text.h"
#include "report/fitting.h"
#include "report/plot/heat_plot.h"
#include "report/plot/sheet.h"
#include "report/portability_report.h"
#include "report/portability_tables.h"

namespace assay {
namespace {

// Rows and columns of the map, and what stands where they meet.
struct HeadlineGrid {
  std::vector<std::pair<size_t, std::string>> rows;  // regime and arm
  std::vector<std::string> classes;
  std::map<std::pair<size_t, size_t>, const HeadlineCell*> at;  // row, class
};

template <typename T>
size_t place_or_add(std::vector<T>& all, const T& one) {
  const auto at = std::ranges::find(all, one);
  if (at != all.end()) return static_cast<size_t>(at - all.begin());
  all.push_back(one);
  return all.size() - 1;
}

HeadlineGrid headline_grid(const Portability& of) {
  HeadlineGrid grid;
  for (const HeadlineCell& cell : of.matrix) {
    const size_t row = place_or_add(grid.rows, {cell.regime, cell.arm});
    const size_t column = place_or_add(grid.classes, cell.model_class);
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
  }
  return {fmt::format("{:+.0f} %", gain * 100), tip, heat_of(std::abs(gain), 0.02, 0.1, 0.3),
          gain > 0};
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

}  // namespace

Figure portability_figure(const Portability& of) {
  Figure figure;
  figure.id = "headline";
  figure.finding =
      fmt::format("What compilation gains in prefill and loses in decode: {} beside {}",
                  counted(std::ssize(of.regimes) - 1, "bundle"), of.regimes[0].name);
  figure.caption =
      "Green: faster than the baseline; orange: slower, or rows lost. The tint is stronger from "
      "2, 10 and 30 % of gain on, and from the first, 5 and 50 % of lost rows on. A dash: not "
      "measured, or not comparable.";
  const HeadlineGrid grid = headline_grid(of);
  add_panels(of, grid, true, figure.panels);
  add_panels(of, grid, false, figure.panels);
  figure.tables.push_back(headline_table(of, kEveryRow).table);
  return figure;
}

std::string portability_heat_map(const Portability& of) {
  const Figure figure = portability_figure(of);
  return plot::sheet(figure.finding, figure.caption, figure.legend, figure.panels);
}

}  // namespace assay
