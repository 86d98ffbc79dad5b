// Time and speed along the sizes of prompts and batches, and the number of new tokens.
#include <algorithm>

#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/growth.h"
#include "report/phase_answers.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kMostPanels = 12;

// One arm's means, or its tokens a second, along a line.
plot::Series series_of(const Findings& findings, const GrowthLine& line, const std::string& arm,
                       bool of_rates) {
  plot::Series series{arm, arm_style(findings, arm), plot::Join::kStraight, {}, {}};
  for (const auto& [size, stratum] : line.strata) {
    const Latency* latency = mean_of(findings, stratum, arm);
    if (latency == nullptr) continue;
    const auto value = of_rates ? tokens_per_second(findings, *latency) : latency->mean;
    if (!value) continue;
    const auto x = static_cast<double>(size);
    series.points.push_back({x, *value});
    plot::Mark mark{x, *value, plot::Around::kNothing,
                    fmt::format("{}, {}: {} {}", arm, size, format_significant(*value, 4),
                                of_rates ? "tokens/s" : "ms")};
    if (!of_rates && latency->mean_interval) mark.y_interval = span_of(*latency->mean_interval);
    series.marks.push_back(std::move(mark));
  }
  return series;
}

std::optional<plot::XyPanel> panel_of(const Findings& findings, const GrowthLine& line,
                                      bool of_rates) {
  plot::XyPanel panel;
  std::vector<std::string> texts;
  for (const std::string& arm : findings.study.arms) {
    plot::Series series = series_of(findings, line, arm, of_rates);
    if (series.points.size() < 2) continue;
    texts.push_back(fmt::format("{} from {} to {}", arm,
                                format_significant(series.points.front().y, 3),
                                format_significant(series.points.back().y, 3)));
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) return std::nullopt;
  const char* what = of_rates ? "tokens/s" : "ms, mean of warm rows";
  panel.title = panel_title(line_label(findings, line));
  panel.alt =
      fmt::format("{} by {}, {} to {}: {}.", what, size_label(line.along),
                  line.strata.begin()->first, line.strata.rbegin()->first, join(texts, "; "));
  panel.x_label = size_label(line.along);
  panel.y_label = what;
  return panel;
}

Table growth_table(const Findings& findings, Phase phase) {
  Table table{.columns = columns_of("<stratum|<arm|mean_ms|95% interval|tokens/s")};
  for (const Latency& latency : findings.latencies) {
    if (findings.strata[latency.stratum].phase != phase) continue;
    table.rows.push_back({stratum_label(findings, latency.stratum), latency.arm, latency.mean,
                          spread_cell(latency.mean_interval, latency.mean_process_range),
                          tokens_per_second(findings, latency)});
  }
  return table;
}

}  // namespace

std::optional<Figure> growth_figure(const Findings& findings, Phase phase) {
  Figure figure;
  for (const GrowthLine& line : growth_lines(findings, phase)) {
    for (const bool of_rates : {false, true}) {
      if (figure.panels.size() == kMostPanels) break;
      const auto panel = panel_of(findings, line, of_rates);
      if (!panel) continue;
      if (figure.finding.empty()) figure.finding = growth_finding(findings, phase, line);
      figure.panels.push_back(draw(*panel));
    }
  }
  if (figure.panels.empty() || figure.finding.empty()) return std::nullopt;
  figure.id = fmt::format("{}-growth", phase_name(phase));
  figure.caption =
      "Each line is an arm's mean time, or its tokens a second, along a size in which the strata "
      "differ; the bars are 95 % intervals.";
  figure.legend = arm_legend(findings, findings.study.arms, true);
  figure.tables = {growth_table(findings, phase)};
  return figure;
}

}  // namespace assay
