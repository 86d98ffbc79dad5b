// The figures, one function each, and the functions that they share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/figures/figure.h"
#include "report/plot/rows_plot.h"

namespace assay {

// Absent where nothing is known of what the figure shows; without panels where that is nothing.
std::optional<Figure> ratio_figure(const Findings& findings, Phase phase);
std::optional<Figure> distribution_figure(const Findings& findings, const PlottedRows& plotted,
                                          Phase phase);
std::optional<Figure> order_figure(const Findings& findings, const PlottedRows& plotted,
                                   Phase phase);
std::optional<Figure> tail_figure(const Findings& findings, Phase phase);
// Absent too where no two strata differ in one size alone.
std::optional<Figure> growth_figure(const Findings& findings, Phase phase);
// Only of studies under load.
std::optional<Figure> load_curve_figure(const Findings& findings);
std::optional<Figure> load_latency_figure(const Findings& findings);
std::optional<Figure> load_timeline_figure(const Findings& findings, const PlottedRows& plotted);
std::optional<Figure> loss_figure(const Findings& findings);
std::optional<Figure> compile_cost_figure(const Findings& findings);
std::optional<Figure> read_share_figure(const Findings& findings);
std::optional<Figure> split_figure(const Findings& findings);
std::optional<Figure> size_figure(const Findings& findings);
// The busy time of the GPU by the profiles, if there are no timelines.
std::optional<Figure> timeline_figure(const Findings& findings, const PlottedRows& plotted);

// The arm's style in all figures of a report.
plot::Style arm_style(const Findings& findings, const std::string& arm);
// Legend of the arms that the figure has, in the study's order.
std::vector<plot::LegendEntry> arm_legend(const Findings& findings,
                                          const std::vector<std::string>& arms, bool lines);

// The groups of each stratum of the phase.
struct StratumGroups {
  size_t stratum = 0;
  std::span<const PlottedGroup> groups;
};
std::vector<StratumGroups> groups_by_stratum(const Findings& findings, const PlottedRows& plotted,
                                             Phase phase);

// Place and time of every mark of the phase's order_figure().
PointTable order_table(const Findings& findings, std::span<const StratumGroups> strata);

// Text that fits its place in a panel; a longer text is cut in the middle.
std::string panel_title(const std::string& text);
std::string row_label(const std::string& text);
// A row's label of any length: it takes the lines that it needs.
std::string whole_label(const std::string& text);
std::string line_text(const std::string& text);

plot::Span span_of(const stats::Interval& interval);
// Absent where it shows nothing (report/answers.h).
std::optional<plot::Span> ratio_span(const std::optional<stats::Interval>& interval);

// Rows of strata as panels of a readable height: split where the model changes, and where there are
// many of one.
struct StratumRow {
  size_t stratum = 0;
  plot::PlotRow row;
};
struct RowsFigure {
  std::string phase;                // opens the panels' titles
  std::vector<plot::PlotRow> head;  // rows of all strata: in the first panel
  std::vector<StratumRow> rows;
  std::string x_label;
  std::optional<plot::RuleAt> rule;
  plot::Scale::Start start = plot::Scale::Start::kFree;
};
// Gives the figure its panels, all to one scale and with one axis, and the rule's entry in its
// legend. `what` opens their alternative text, which goes on with the lines' texts.
void draw_rows(const Findings& findings, const RowsFigure& rows, const std::string& what,
               Figure& figure);
plot::LegendEntry rule_legend(const plot::RuleAt& rule);

// A share in percent, without the sign: "12", "0.35".
std::string percent_text(double share);
// "4 of 5 strata".
std::string of_strata(size_t count, size_t all);
// The parts of a list that a title has room for.
inline constexpr size_t kMostListed = 3;
// "0.86 [0.84, 0.90]", "0.86 [too few to tell]".
std::string ratio_text(double ratio, const std::optional<stats::Interval>& interval,
                       const std::optional<stats::Interval>& process_range = std::nullopt);
std::string ratio_text(const Contrast& contrast);

}  // namespace assay
