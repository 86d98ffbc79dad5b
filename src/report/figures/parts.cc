#include "report/figures/parts.h"

#include <algorithm>

#include "base/text/text.h"
#include "report/answers.h"
#include "report/fitting.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kFewRows = 4;    // one panel
constexpr size_t kMostRows = 10;  // of a panel
constexpr size_t kPanelsAbreast = 3;

// The panel's rows as a text for people who can't see them.
std::string alternative(const Findings& findings, const plot::RowsPanel& panel,
                        const std::string& what) {
  constexpr size_t kMostLines = 12;
  std::vector<std::string> parts;
  for (const plot::PlotRow& row : panel.rows) {
    std::string label = row.label;
    std::ranges::replace(label, '\n', ' ');
    for (const plot::RowLine& line : row.lines) {
      const size_t arm = line.style.number;
      const std::string name = arm < findings.study.arms.size() ? findings.study.arms[arm] : "";
      parts.push_back(fmt::format("{} {}: {}", label, name, line.text));
    }
  }
  const size_t shown = std::min(kMostLines, parts.size());
  std::string text = fmt::format("{}. {}", what, join(std::span(parts).first(shown), "; "));
  if (shown < parts.size()) text += fmt::format("; and {} more in the table", parts.size() - shown);
  return text + ".";
}

// First row of each panel; the last entry is the end of the rows.
std::vector<size_t> panel_starts(const Findings& findings, const RowsFigure& figure) {
  std::vector<size_t> starts = {0};
  const auto& rows = figure.rows;
  const auto model_of = [&](size_t i) { return findings.strata[rows[i].stratum].model; };
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && model_of(end) == model_of(begin)) ++end;
    const size_t count = end - begin;
    const size_t by_height = (count + kMostRows - 1) / kMostRows;
    const size_t panels =
        count <= kFewRows ? 1 : std::max(by_height, std::min(kPanelsAbreast, count / 2));
    for (size_t p = 1; p <= panels; ++p) starts.push_back(begin + count * p / panels);
    begin = end;
  }
  return starts;
}

}  // namespace

plot::Style arm_style(const Findings& findings, const std::string& arm) {
  const auto at = std::ranges::find(findings.study.arms, arm);
  return {static_cast<size_t>(at - findings.study.arms.begin())};
}

std::vector<plot::LegendEntry> arm_legend(const Findings& findings,
                                          const std::vector<std::string>& arms, bool lines) {
  std::vector<plot::LegendEntry> legend;
  for (const std::string& arm : findings.study.arms) {
    if (std::ranges::find(arms, arm) == arms.end()) continue;
    legend.push_back({row_label(arm), arm_style(findings, arm),
                      lines ? plot::Sample::kMarkedLine : plot::Sample::kMark});
  }
  return legend;
}

std::vector<StratumGroups> groups_by_stratum(const Findings& findings, const PlottedRows& plotted,
                                             Phase phase) {
  std::vector<StratumGroups> strata;
  for (size_t stratum = 0; stratum < findings.strata.size(); ++stratum) {
    if (findings.strata[stratum].phase != phase) continue;
    const auto groups =
        std::ranges::equal_range(plotted.groups, stratum, {}, &PlottedGroup::stratum);
    if (!groups.empty()) strata.push_back({stratum, {groups.begin(), groups.end()}});
  }
  return strata;
}

std::string panel_title(const std::string& text) {
  return shortened(text, plot::kTitleColumns);
}

std::string row_label(const std::string& text) {
  return shortened(text, plot::kLabelColumns);
}

std::string whole_label(const std::string& text) {
  return join(wrapped_lines(text, plot::kLabelColumns, 0), "\n");
}

std::string line_text(const std::string& text) {
  return shortened(text, plot::kValueColumns);
}

plot::Span span_of(const stats::Interval& interval) {
  return {interval.low, interval.high};
}

std::optional<plot::Span> ratio_span(const std::optional<stats::Interval>& interval) {
  if (!interval || shows_nothing(*interval)) return std::nullopt;
  return span_of(*interval);
}

plot::LegendEntry rule_legend(const plot::RuleAt& rule) {
  return {rule.label, {}, plot::Sample::kRule};
}

void draw_rows(const Findings& findings, const RowsFigure& rows, const std::string& what,
               Figure& figure) {
  const std::vector<size_t> starts = panel_starts(findings, rows);
  std::vector<plot::RowsPanel> panels;
  for (size_t p = 0; p + 1 < starts.size(); ++p) {
    plot::RowsPanel panel;
    std::string title = rows.phase;
    if (starts.size() > 2) {
      const std::string& model = findings.strata[rows.rows[starts[p]].stratum].model;
      title +=
          fmt::format("{}{} ({} of {})", title.empty() ? "" : " ", model, p + 1, starts.size() - 1);
    }
    panel.title = panel_title(title);
    panel.x_label = rows.x_label;
    panel.rule = rows.rule;
    if (p == 0) panel.rows = rows.head;
    for (size_t i = starts[p]; i < starts[p + 1]; ++i) panel.rows.push_back(rows.rows[i].row);
    panel.alt = alternative(findings, panel, what);
    panels.push_back(std::move(panel));
  }
  if (panels.empty() && !rows.head.empty()) {
    panels.push_back({panel_title(rows.phase), "", rows.x_label, rows.rule, rows.head, 0});
    panels.back().alt = alternative(findings, panels.back(), what);
  }
  plot::Extent extent;
  size_t columns = 0;
  for (const plot::RowsPanel& panel : panels) {
    add_extent(panel, extent);
    columns = std::max(columns, value_columns(panel));
  }
  for (plot::RowsPanel& panel : panels) panel.value_columns = columns;
  const plot::Scale scale = plot::Scale::of(extent, rows.start);
  for (const plot::RowsPanel& panel : panels) figure.panels.push_back(draw(panel, scale));
  if (rows.rule) figure.legend.push_back(rule_legend(*rows.rule));
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  return percent < 10 ? format_significant(percent, 2) : fmt::format("{:.0f}", percent);
}

std::string of_strata(size_t count, size_t all) {
  return fmt::format("{} of {} {}", count, all, all == 1 ? "stratum" : "strata");
}

std::string ratio_text(double ratio, const std::optional<stats::Interval>& interval,
                       const std::optional<stats::Interval>& process_range) {
  const auto number = [](double value) { return format_significant(value, 3); };
  if (interval && shows_nothing(*interval)) return fmt::format("{} {}", number(ratio), kTooFew);
  return number(ratio) + spread_text(interval, process_range, number);
}

std::string ratio_text(const Contrast& contrast) {
  return ratio_text(contrast.ratio, contrast.ratio_interval, contrast.ratio_process_range);
}

}  // namespace assay
