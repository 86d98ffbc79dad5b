// Traced repetitions beside one another: when kernels, copies and calls ran.
#include <algorithm>

#include "base/text.h"
#include "report/figures/parts.h"
#include "report/sections.h"

namespace assay {
namespace {

// "1 copy", "2 copies".
std::string events_text(int64_t events, const std::string& lane) {
  if (events != 1) return fmt::format("{} {}", events, lane);
  return lane == "copies" ? "1 copy" : fmt::format("1 {}", lane.substr(0, lane.size() - 1));
}

plot::RowLine line_of(const Findings& findings, const Timeline& timeline,
                      const TimelineLane& lane) {
  plot::RowLine line;
  line.style = arm_style(findings, timeline.arm);
  int64_t events = 0;
  for (const TimelineLane::Span& span : lane.spans) {
    events += span.events;
    std::string tip = fmt::format("{} {}: {} at {} ms for {} ms", timeline.cell, lane.name,
                                  row_label(span.name), format_significant(span.begin_ms),
                                  format_significant(span.end_ms - span.begin_ms, 3));
    if (span.events > 1) tip += fmt::format(", and {} more", span.events - 1);
    line.bars.push_back({{span.begin_ms, span.end_ms}, false, std::move(tip)});
  }
  line.text = line_text(events_text(events, lane.name));
  return line;
}

// What a profile counts, where it isn't kernels: the worker says.
std::string other_counts(const CellProfile& profile) {
  return profile.counts.starts_with("kernels") ? "" : profile.counts;
}

std::string finding(const Findings& findings) {
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
    parts.push_back(std::move(text));
  }
  if (parts.empty()) return "One repetition of each cell was traced";
  return fmt::format("On {} {}, {}{}",
                     phase_name(findings.strata[findings.profiles.front().stratum].phase),
                     stratum_label(findings, findings.profiles.front().stratum), listed(parts, 4),
                     counts.empty() ? "" : fmt::format(" ({})", counts));
}

}  // namespace

std::optional<Figure> timeline_figure(const Findings& findings, const PlottedRows& plotted) {
  Figure figure;
  std::vector<std::string> arms;
  for (auto timeline = plotted.timelines.begin(); timeline != plotted.timelines.end();) {
    const size_t stratum = timeline->stratum;
    const std::string label = fmt::format("{} {}", phase_name(findings.strata[stratum].phase),
                                          stratum_label(findings, stratum));
    plot::RowsPanel panel{panel_title(label), "", "ms since the repetition began", {}, {}};
    std::vector<std::string> texts;
    for (; timeline != plotted.timelines.end() && timeline->stratum == stratum; ++timeline) {
      plot::PlotRow row{row_label(fmt::format("{}, {} ms", timeline->arm,
                                              format_significant(timeline->length_ms))),
                        {}};
      for (const TimelineLane& lane : timeline->lanes) {
        row.lines.push_back(line_of(findings, *timeline, lane));
        texts.push_back(fmt::format("{}: {}", timeline->arm, row.lines.back().text));
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
  figure.finding = finding(findings);
  figure.caption =
      "One traced repetition of each arm, on one scale. Where a lane is empty, that part "
      "of the machine waits. Operators are the innermost ones; what a compiled graph runs beside "
      "them has no events of its own. Neighbouring events that are too short to draw separately "
      "are "
      "one bar. Tracing slows a repetition down, so these times are not latencies; "
      "cells/CELL/trace.json.gz has every event.";
  figure.legend = arm_legend(findings, arms, false);
  figure.tables = profile_section(findings, Detail::kSummary).tables;
  return figure;
}

}  // namespace assay
