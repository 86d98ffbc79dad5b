// Every row in the order of the run, with its mark: cold, throttled, recompiled, lost.
#include <algorithm>
#include <map>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// Up to so many rows all have a tip; of more, only rows that recompiled, were throttled or lost.
constexpr size_t kMostTips = 12'000;

plot::Around around_of(RowMark mark) {
  switch (mark) {
    case RowMark::kCold:
      return plot::Around::kRing;
    case RowMark::kThrottled:
      return plot::Around::kUnderline;
    case RowMark::kRecompiled:
      return plot::Around::kDiamond;
    case RowMark::kLost:
      return plot::Around::kCross;
    case RowMark::kWarm:
      break;
  }
  return plot::Around::kNothing;
}

constexpr RowMark kMarked[] = {RowMark::kCold, RowMark::kRecompiled, RowMark::kThrottled,
                               RowMark::kLost};

std::string row_text(const PlottedGroup& group, const PlottedRow& row) {
  std::string text = fmt::format("{} repetition {}", group.cells[row.cell], row.repetition);
  if (row.latency_ms) text += fmt::format(": {} ms", format_significant(*row.latency_ms));
  if (row.mark != RowMark::kWarm) text += fmt::format(", {}", row_mark_name(row.mark));
  if (!row.error_class.empty()) text += fmt::format(" ({})", row.error_class);
  return text;
}

plot::Series series_of(const Findings& findings, const PlottedGroup& group, bool with_tips) {
  plot::Series series;
  series.style = arm_style(findings, group.arm);
  series.name = group.arm;
  for (const PlottedRow& row : group.order) {
    const auto place = static_cast<double>(row.rank);
    const double ms = row.latency_ms.value_or(0);
    if (row.mark == RowMark::kWarm) {
      series.points.push_back({place, ms, with_tips ? row_text(group, row) : ""});
    } else {
      const bool has_tip = with_tips || row.mark != RowMark::kCold;
      series.marks.push_back({place, ms, around_of(row.mark), has_tip ? row_text(group, row) : "",
                              !row.latency_ms.has_value()});
    }
  }
  return series;
}

using MarkCounts = std::map<RowMark, int64_t>;

// "3 are cold and 1 recompiled".
std::string counts_text(const MarkCounts& counts) {
  std::vector<std::string> parts;
  for (const RowMark mark : kMarked) {
    const auto count = counts.find(mark);
    if (count == counts.end() || count->second == 0) continue;
    const char* verb = !parts.empty() ? "" : count->second == 1 ? "is " : "are ";
    parts.push_back(fmt::format("{} {}{}", count->second, verb, row_mark_name(mark)));
  }
  return parts.empty() ? "none is marked" : listed(parts);
}

// Cells of the phase whose latency changes with the order, by the findings.
size_t changing_cells(const Findings& findings, Phase phase) {
  std::vector<std::pair<size_t, std::string>> cells;
  for (const Finding& named : findings.named) {
    if ((named.kind != "drift" && named.kind != "level_change") || !named.stratum) continue;
    if (findings.strata[*named.stratum].phase != phase) continue;
    cells.emplace_back(*named.stratum, named.arm);
  }
  std::ranges::sort(cells);
  const auto rest = std::ranges::unique(cells);
  return cells.size() - rest.size();
}

bool changes_between_rounds(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.named, [&](const Finding& named) {
    return (named.kind == "drift" || named.kind == "level_change") && !named.stratum &&
           named.phase == phase;
  });
}

std::string changes_text(const Findings& findings, Phase phase, size_t groups) {
  const size_t changing = changing_cells(findings, phase);
  std::string text =
      changing == 0
          ? ""
          : fmt::format("latency drifts or changes its level in {} of {} cells", changing, groups);
  if (changes_between_rounds(findings, phase)) {
    text += text.empty() ? "latency drifts or changes its level" : ", and";
    text += " from round to round of all cells";
  }
  return text.empty() ? "no drift or change of level is found" : text;
}

// Counts over all groups of a phase.
struct Gathered {
  MarkCounts counts;
  int64_t rows = 0;
  size_t groups = 0;
  bool thinned = false;

  void add(const PlottedGroup& group) {
    ++groups;
    rows += group.rows;
    thinned = thinned || group.rows > static_cast<int64_t>(group.order.size());
    for (const auto& [mark, count] : group.marked) counts[mark] += count;
  }
};

std::string order_finding(const Findings& findings, Phase phase, const Gathered& gathered) {
  return fmt::format("{}: {} in the course of the run; of {} rows, {}", phase_name(phase),
                     changes_text(findings, phase, gathered.groups), gathered.rows,
                     counts_text(gathered.counts));
}

std::string caption(const Gathered& gathered, bool with_tips) {
  std::string text =
      "Each mark is one row, from left to right in the order of the run: a small one, or one with "
      "a ring about it (a cold row: a warm-up or a first call), a diamond (it recompiled) or a "
      "line below it (it was throttled); a cross on the upper edge is a lost row, which has no "
      "latency. A slope or a "
      "step that all arms share comes from the machine. The table has the place and the time of "
      "each mark; it isn't printed. metrics.csv of the phase has every row.";
  if (gathered.thinned) {
    text +=
        " Of arms with more than 300 rows, the fastest and the slowest of each of 150 stretches "
        "are drawn, and as many marked rows.";
  }
  if (!with_tips) {
    text +=
        " There are too many rows to name each: rows that recompiled, were throttled or lost have "
        "a "
        "tooltip of their own, others that of their arm.";
  }
  return text;
}

bool has_latencies(const StratumGroups& of) {
  return std::ranges::any_of(of.groups, [](const PlottedGroup& group) {
    return std::ranges::any_of(group.order,
                               [](const PlottedRow& row) { return row.latency_ms.has_value(); });
  });
}

plot::Panel panel_of(const Findings& findings, const StratumGroups& of, bool with_tips) {
  plot::XyPanel panel;
  MarkCounts counts;
  for (const PlottedGroup& group : of.groups) {
    panel.series.push_back(series_of(findings, group, with_tips));
    for (const auto& [mark, count] : group.marked) counts[mark] += count;
  }
  const std::string label = stratum_label(findings, of.stratum);
  panel.title = panel_title(label);
  panel.alt = fmt::format("Latencies on {} in the order of the run; of its rows, {}.", label,
                          counts_text(counts));
  panel.x_label = "rows in the order of the run";
  panel.x_start = plot::Scale::Start::kLinear;
  panel.y_label = "ms";
  return draw(panel);
}

std::vector<plot::LegendEntry> mark_legend(const MarkCounts& counts) {
  std::vector<plot::LegendEntry> legend;
  for (const RowMark mark : kMarked) {
    if (!counts.contains(mark)) continue;
    legend.push_back(
        {std::string(row_mark_name(mark)), {}, plot::Sample::kRemark, around_of(mark)});
  }
  return legend;
}

}  // namespace

std::optional<Figure> order_figure(const Findings& findings, const PlottedRows& plotted,
                                   Phase phase) {
  size_t drawn = 0;
  for (const PlottedGroup& group : plotted.groups) drawn += group.order.size();
  const bool with_tips = drawn <= kMostTips;
  Figure figure;
  Gathered gathered;
  std::vector<std::string> arms;
  std::vector<StratumGroups> drawn_strata = groups_by_stratum(findings, plotted, phase);
  // A stratum whose rows were all lost is in the figure of lost rows.
  std::erase_if(drawn_strata, [](const StratumGroups& of) { return !has_latencies(of); });
  for (const StratumGroups& of : drawn_strata) {
    figure.panels.push_back(panel_of(findings, of, with_tips));
    for (const PlottedGroup& group : of.groups) {
      gathered.add(group);
      arms.push_back(group.arm);
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = fmt::format("{}-order", phase_name(phase));
  figure.finding = order_finding(findings, phase, gathered);
  figure.caption = caption(gathered, with_tips);
  figure.legend = arm_legend(findings, arms, false);
  for (plot::LegendEntry& entry : mark_legend(gathered.counts)) {
    figure.legend.push_back(std::move(entry));
  }
  figure.points = order_table(findings, drawn_strata);
  return figure;
}

}  // namespace assay
