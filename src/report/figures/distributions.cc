// Figure of the distribution of each arm's warm rows, stratum by stratum.
#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::span<const Latency> latencies_of(const Findings& findings, size_t stratum) {
  const auto found = std::ranges::equal_range(findings.latencies, stratum, {}, &Latency::stratum);
  return {found.begin(), found.end()};
}

// True if the arm lost rows: those that are left are no figure of its speed.
bool lost_rows(const Findings& findings, const Latency& latency) {
  return std::ranges::any_of(findings.outcomes, [&](const OutcomeCounts& outcome) {
    return outcome.stratum == latency.stratum && outcome.arm == latency.arm && outcome.failed > 0;
  });
}

// The arm that lost no rows and most often has the lowest such figure, with the number of the
// phase's strata on which it does.
struct Leader {
  std::string arm;
  size_t strata = 0;
  size_t all = 0;
};
Leader leader_by(const Findings& findings, Phase phase, std::optional<double> Latency::*figure) {
  Leader leader;
  std::map<std::string, size_t> counts;
  for (size_t stratum = 0; stratum < findings.strata.size(); ++stratum) {
    if (findings.strata[stratum].phase != phase) continue;
    const Latency* lowest = nullptr;
    for (const Latency& latency : latencies_of(findings, stratum)) {
      if (latency.parity_failed || !(latency.*figure) || lost_rows(findings, latency)) continue;
      if (lowest == nullptr || *(latency.*figure) < *(lowest->*figure)) lowest = &latency;
    }
    if (lowest == nullptr) continue;
    ++leader.all;
    const size_t count = ++counts[lowest->arm];
    if (count > leader.strata) leader = {lowest->arm, count, leader.all};
  }
  return leader;
}

std::string distribution_finding(const Findings& findings, Phase phase) {
  const Leader typical = leader_by(findings, phase, &Latency::median);
  const Leader tail = leader_by(findings, phase, &Latency::p95);
  if (typical.all == 0) {
    return fmt::format("{}: no arm has warm rows and lost none", phase_name(phase));
  }
  if (findings.study.arms.size() == 1) {
    return fmt::format("{}: the spread of {}'s rows", phase_name(phase), typical.arm);
  }
  std::string text = fmt::format("{}: {} has the lowest median on {}", phase_name(phase),
                                 typical.arm, of_strata(typical.strata, typical.all));
  if (tail.all > 0) {
    text +=
        fmt::format("{} the lowest p95 on {}",
                    tail.arm == typical.arm ? " and" : fmt::format(", {}", tail.arm), tail.strata);
  }
  return text;
}

std::string figures_text(const Latency& latency) {
  std::string text = fmt::format("{}: {}", latency.arm, counted(latency.n, "row"));
  if (latency.median) text += fmt::format(", median {} ms", format_significant(*latency.median));
  if (latency.p95) text += fmt::format(", p95 {} ms", format_significant(*latency.p95));
  return text;
}

plot::Series series_of(const Findings& findings, const PlottedGroup& group) {
  plot::Series series;
  series.style = arm_style(findings, group.arm);
  series.join = plot::Join::kSteps;
  series.name = group.arm;
  for (const Latency& latency : latencies_of(findings, group.stratum)) {
    if (latency.arm == group.arm) series.name = figures_text(latency);
  }
  if (group.ecdf.empty()) return series;
  series.points.push_back({group.ecdf.front().ms, 0});
  for (const EcdfStep& step : group.ecdf) series.points.push_back({step.ms, step.share * 100});
  // The style's shape, where the line crosses the median.
  const auto half = std::ranges::find_if(group.ecdf, [](const auto& s) { return s.share >= 0.5; });
  series.marks.push_back({half->ms, half->share * 100, plot::Around::kNothing, ""});
  const PlottedRow& slowest = *group.slowest;
  plot::Mark end{*slowest.latency_ms, 100, plot::Around::kNothing,
                 fmt::format("{} repetition {}: {} ms", group.cells[slowest.cell],
                             slowest.repetition, format_significant(*slowest.latency_ms))};
  end.size = plot::MarkSize::kSmall;
  series.marks.push_back(std::move(end));
  return series;
}

// Absent where no row is warm.
std::optional<plot::Panel> panel_of(const Findings& findings, const StratumGroups& of) {
  plot::XyPanel panel;
  std::vector<std::string> texts;
  for (const PlottedGroup& group : of.groups) {
    if (group.warm == 0) continue;
    panel.series.push_back(series_of(findings, group));
    for (const Latency& latency : latencies_of(findings, group.stratum)) {
      if (latency.arm != group.arm || !latency.median) continue;
      texts.push_back(fmt::format("{} {}", group.arm, format_significant(*latency.median)));
    }
  }
  if (panel.series.empty()) return std::nullopt;
  const std::string label = stratum_label(findings, of.stratum);
  panel.title = panel_title(label);
  panel.alt =
      fmt::format("Distributions of latency on {}. Medians in ms: {}.", label, join(texts, ", "));
  panel.x_label = "ms";
  panel.y_label = "% of warm rows";
  panel.y_start = plot::Scale::Start::kZero;
  return draw(panel);
}

}  // namespace

std::optional<Figure> distribution_figure(const Findings& findings, const PlottedRows& plotted,
                                          Phase phase) {
  Figure figure;
  bool thinned = false;
  std::vector<std::string> arms;
  for (const StratumGroups& of : groups_by_stratum(findings, plotted, phase)) {
    auto panel = panel_of(findings, of);
    if (!panel) continue;
    figure.panels.push_back(*std::move(panel));
    for (const PlottedGroup& group : of.groups) {
      thinned = thinned || static_cast<int64_t>(group.ecdf.size()) < group.warm;
      arms.push_back(group.arm);
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = fmt::format("{}-distributions", phase_name(phase));
  figure.finding = distribution_finding(findings, phase);
  figure.caption = fmt::format(
      "Each line is one arm: at a time on the x axis, the share of its warm rows that took no "
      "longer (ECDF). The line furthest to the left is the fastest; its mark stands at the median, "
      "a small one at the slowest row. A long flat end is a tail. The rows' own times are in the "
      "table "
      "of the next figure.{}",
      thinned ? " Lines of more than 300 rows are drawn with 300 steps." : "");
  figure.legend = arm_legend(findings, arms, true);
  figure.tables = latency_section(findings, phase, Detail::kFull).tables;
  return figure;
}

}  // namespace assay
