// Traced repetitions beside one another: when kernels, copies and calls ran.
#include <algorithm>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "1 copy", "2 copies".
std::string events_text(int64_t events, const std::string& lane) {
  if (events != 1) return fmt::format("{} {}", events, lane);
  return lane == "copies" ? "1 copy" : fmt::format("1 {}", lane.substr(0, lane.size() - 1));
}

// Up to so many bars have a tip each; more have one tip a lane.
constexpr size_t kMostLaneTips = 60;

// "12", "0.35": of a traced repetition, in percent.
std::string busy_percent(const Timeline& timeline, const TimelineLane& lane) {
  return percent_text(lane.busy_ms / timeline.length_ms);
}

std::string span_tip(const Timeline& timeline, const TimelineLane& lane,
                     const TimelineLane::Span& span) {
  const double length_ms = span.end_ms - span.begin_ms;
  std::string tip =
      fmt::format("{} {}: {} at {} ms for {} ms", timeline.cell, lane.name, row_label(span.name),
                  format_significant(span.begin_ms), format_significant(length_ms, 3));
  if (span.events > 1) tip += fmt::format(", and {} more", span.events - 1);
  if (span.busy_ms < length_ms) {
    tip += fmt::format(", busy {} % of that time", percent_text(span.busy_ms / length_ms));
  }
  return tip;
}

plot::RowLine line_of(const Findings& findings, const Timeline& timeline,
                      const TimelineLane& lane) {
  plot::RowLine line;
  line.style = arm_style(findings, timeline.arm);
  for (const TimelineLane::Span& span : lane.spans) {
    const double length_ms = span.end_ms - span.begin_ms;
    const double share = length_ms > 0 ? std::min(1.0, span.busy_ms / length_ms) : 1;
    std::string tip = lane.spans.size() <= kMostLaneTips ? span_tip(timeline, lane, span) : "";
    line.bars.push_back({{span.begin_ms, span.end_ms}, plot::Tint::kFull, std::move(tip), share});
  }
  const std::string events = events_text(lane.events, lane.name);
  line.text = line_text(fmt::format("{}, {} %", events, busy_percent(timeline, lane)));
  line.tip = fmt::format("{}: {}, busy {} of {} ms", timeline.cell, events,
                         format_significant(lane.busy_ms), format_significant(timeline.length_ms));
  return line;
}

Table lane_table(const Findings& findings, const std::vector<Timeline>& timelines) {
  Table table{"Busy time of each lane",
              columns_of("<phase|<stratum|<arm|<lane|events|busy_ms|traced_ms|busy_%"),
              {}};
  for (const Timeline& timeline : timelines) {
    const Stratum& stratum = findings.strata[timeline.stratum];
    for (const TimelineLane& lane : timeline.lanes) {
      table.rows.push_back({phase_name(stratum.phase), stratum_label(findings, timeline.stratum),
                            timeline.arm, lane.name, lane.events, lane.busy_ms, timeline.length_ms,
                            TableCell(100 * lane.busy_ms / timeline.length_ms, 3)});
    }
  }
  return table;
}

// The unit of the profile's counts, if it isn't kernels: the worker names it.
std::string other_counts(const CellProfile& profile) {
  return profile.counts.starts_with("kernels") ? "" : profile.counts;
}

// Share of the traced repetition in which the GPU was busy; absent if the worker traced no GPU.
std::optional<double> busy_share(const CellProfile& profile) {
  if (!profile.gpu_busy_ns || *profile.gpu_busy_ns <= 0) return std::nullopt;
  if (!profile.wall_ns || *profile.wall_ns <= 0) return std::nullopt;
  return static_cast<double>(*profile.gpu_busy_ns) / static_cast<double>(*profile.wall_ns);
}

// " (busy 12 % of the traced time)": the GPU; empty where none was traced.
std::string busy_text(const CellProfile& profile, bool is_first) {
  const auto share = busy_share(profile);
  if (!share) return "";
  return fmt::format(" (busy {} %{})", percent_text(*share), is_first ? " of the traced time" : "");
}

std::string timeline_finding(const Findings& findings) {
  std::vector<std::string> parts;
  std::string counts;
  for (const CellProfile& profile : findings.profiles) {
    if (!profile.missing.empty() || !profile.kernels) continue;
    const Stratum& stratum = findings.strata[profile.stratum];
    if (stratum.phase != findings.strata[findings.profiles.front().stratum].phase) continue;
    if (profile.stratum != findings.profiles.front().stratum) continue;
    counts = other_counts(profile);
    std::string text =
        counts.empty() ? fmt::format("{} runs {}", profile.arm, counted(*profile.kernels, "kernel"))
                       : fmt::format("{} runs {}", profile.arm, *profile.kernels);
    if (profile.launch_calls) text += " in " + counted(*profile.launch_calls, "launch", "launches");
    text += busy_text(profile, parts.empty());
    parts.push_back(std::move(text));
  }
  if (parts.empty()) return "One repetition of each cell was traced";
  return fmt::format("On {} {}, {}{}",
                     phase_name(findings.strata[findings.profiles.front().stratum].phase),
                     stratum_label(findings, findings.profiles.front().stratum), listed(parts, 4),
                     counts.empty() ? "" : fmt::format(" ({})", counts));
}

// Figure for profiles whose traces aren't kept: how long the GPU was busy, in place of when.
std::optional<Figure> busy_figure(const Findings& findings) {
  RowsFigure rows;
  rows.x_label = "% of the traced repetition";
  std::vector<std::string> arms;
  for (const CellProfile& profile : findings.profiles) {
    const auto share = busy_share(profile);
    if (!share) continue;
    const double wall_ms = static_cast<double>(*profile.wall_ns) / 1e6;
    plot::RowLine line;
    line.style = arm_style(findings, profile.arm);
    line.value = 100 * *share;
    line.text =
        line_text(fmt::format("{} % of {} ms", percent_text(*share), format_significant(wall_ms)));
    line.tip = fmt::format("{}: the GPU is busy {}", profile.arm, line.text);
    if (rows.rows.empty() || rows.rows.back().stratum != profile.stratum) {
      const std::string label =
          fmt::format("{} {}", phase_name(findings.strata[profile.stratum].phase),
                      stratum_label(findings, profile.stratum));
      rows.rows.push_back({profile.stratum, {row_label(label), {}}});
    }
    rows.rows.back().row.lines.push_back(std::move(line));
    arms.push_back(profile.arm);
  }
  if (rows.rows.empty()) return std::nullopt;
  Figure figure;
  figure.caption =
      "One repetition of each arm was traced: each mark is the share of it in which the GPU was "
      "busy, and the text has its length. Tracing slows a repetition down, so these times are not "
      "latencies. The traces aren't kept, so there is no picture of when it was busy.";
  draw_rows(findings, rows, "Busy shares of traced repetitions", figure);
  figure.id = "timelines";
  figure.finding = timeline_finding(findings);
  figure.legend = arm_legend(findings, arms, false);
  figure.tables = profile_section(findings, Detail::kSummary).tables;
  return figure;
}

}  // namespace

std::optional<Figure> timeline_figure(const Findings& findings, const PlottedRows& plotted) {
  if (plotted.timelines.empty()) return busy_figure(findings);
  Figure figure;
  std::vector<std::string> arms;
  for (auto timeline = plotted.timelines.begin(); timeline != plotted.timelines.end();) {
    const size_t stratum = timeline->stratum;
    const std::string label = fmt::format("{} {}", phase_name(findings.strata[stratum].phase),
                                          stratum_label(findings, stratum));
    plot::RowsPanel panel{panel_title(label), "", "ms since the repetition began", {}, {}, 0};
    std::vector<std::string> texts;
    for (; timeline != plotted.timelines.end() && timeline->stratum == stratum; ++timeline) {
      plot::PlotRow row{row_label(fmt::format("{}, {} ms", timeline->arm,
                                              format_significant(timeline->length_ms))),
                        {}};
      for (const TimelineLane& lane : timeline->lanes) {
        row.lines.push_back(line_of(findings, *timeline, lane));
        texts.push_back(fmt::format("{}: {}, busy {} %", timeline->arm,
                                    events_text(lane.events, lane.name),
                                    busy_percent(*timeline, lane)));
      }
      panel.rows.push_back(std::move(row));
      arms.push_back(timeline->arm);
    }
    panel.alt = fmt::format("Traced repetitions of {}: {}.", label, join(texts, "; "));
    plot::Extent extent;
    add_extent(panel, extent);
    figure.panels.push_back(draw(panel, plot::Scale::of(extent, plot::Scale::Start::kZero)));
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "timelines";
  figure.finding = timeline_finding(findings);
  figure.caption =
      "One traced repetition of each arm, on one scale. Where a lane is empty, that part of the "
      "machine waits. Waits that are too short to be drawn lower the bar: it is as high as the "
      "share of its time in which something ran. The text counts a lane's events and gives its "
      "exact busy time as a share of the traced one. Operators are the innermost ones; what a "
      "compiled graph runs beside them has no events of its own. Tracing slows a repetition down, "
      "so these times are not latencies; cells/CELL/trace.json.gz has every event.";
  figure.legend = arm_legend(findings, arms, false);
  figure.tables = profile_section(findings, Detail::kSummary).tables;
  figure.tables.push_back(lane_table(findings, plotted.timelines));
  return figure;
}

}  // namespace assay
