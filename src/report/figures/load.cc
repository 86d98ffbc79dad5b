// Servers under load: throughput against latency, latencies against load with their bounds.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/text/counts.h"
#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/load_report.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// Points of one arm, model and length, closed loops apart from open ones: one line.
struct LoadLine {
  std::string arm;
  std::vector<const LoadFigures*> points;  // by load
};

double load_of(const LoadPoint& point) {
  return point.concurrency ? static_cast<double>(*point.concurrency)
                           : point.rate.value_or(point.speed.value_or(0));
}

std::vector<LoadLine> load_lines(const Findings& findings, bool closed) {
  std::vector<LoadLine> lines;
  for (const std::string& arm : findings.study.arms) {
    std::map<std::tuple<std::string, int64_t, int64_t>, LoadLine> by_length;
    for (const LoadFigures& one : findings.load.points) {
      if (one.arm != arm || one.point.concurrency.has_value() != closed) continue;
      const Stratum& stratum = findings.strata[one.stratum];
      LoadLine& line =
          by_length[{stratum.model, stratum.new_tokens, findings.prompts[one.stratum].longest}];
      line.arm = arm;
      line.points.push_back(&one);
    }
    for (auto& [key, line] : by_length) {
      std::ranges::stable_sort(line.points, {}, [](const auto* of) { return load_of(of->point); });
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

using Value = std::function<std::optional<OverRuns>(const LoadFigures&)>;

plot::Series series_of(const Findings& findings, const LoadLine& line, const Value& x,
                       const Value& y, const char* unit) {
  plot::Series series{line.arm, arm_style(findings, line.arm), plot::Join::kStraight, {}, {}};
  for (const LoadFigures* one : line.points) {
    const auto at = x(*one), value = y(*one);
    if (!at || !value) continue;
    series.points.push_back({at->mean, value->mean});
    plot::Mark mark{
        at->mean, value->mean, plot::Around::kNothing,
        fmt::format("{}, {}: {} {}", line.arm, prompt_name(findings.strata[one->stratum]),
                    format_significant(value->mean, 3), unit)};
    if (value->interval) mark.y_interval = span_of(*value->interval);
    series.marks.push_back(std::move(mark));
  }
  return series;
}

struct LoadAxes {
  std::string title;
  std::string x_label;
  std::string y_label;
  const char* unit;
  Value x;
  Value y;
  std::optional<plot::RuleAt> bound = {};
};

void add_panel(const Findings& findings, const std::vector<LoadLine>& lines, const LoadAxes& axes,
               Figure& figure) {
  plot::XyPanel panel;
  std::vector<std::string> texts;
  for (const LoadLine& line : lines) {
    plot::Series series = series_of(findings, line, axes.x, axes.y, axes.unit);
    if (series.points.empty()) continue;
    texts.push_back(fmt::format("{} from {} to {}", line.arm,
                                format_significant(series.points.front().y, 3),
                                format_significant(series.points.back().y, 3)));
    panel.series.push_back(std::move(series));
  }
  // One point is no curve: tables have it.
  if (std::ranges::none_of(panel.series, [](const auto& of) { return of.points.size() > 1; }))
    return;
  panel.title = panel_title(axes.title);
  panel.alt = fmt::format("{} against {}: {}.", axes.y_label, axes.x_label, join(texts, "; "));
  panel.x_label = axes.x_label;
  panel.y_label = axes.y_label;
  panel.x_start = panel.y_start = plot::Scale::Start::kZero;
  panel.y_rule = axes.bound;
  figure.panels.push_back(draw(panel));
}

std::optional<plot::RuleAt> bound_at(const std::optional<double>& bound) {
  if (!bound) return std::nullopt;
  return plot::RuleAt{*bound, fmt::format("bound {:g} ms", *bound)};
}

std::string first_sentence(const Findings& findings) {
  std::string text = load_sentences(findings).front();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<Figure> load_curve_figure(const Findings& findings) {
  if (findings.load.points.empty()) return std::nullopt;
  Figure figure;
  const Value rate = [](const LoadFigures& of) { return std::optional(of.requests_per_s); };
  const Value tokens = [](const LoadFigures& of) { return std::optional(of.tokens_per_s); };
  for (const bool closed : {true, false}) {
    const auto lines = load_lines(findings, closed);
    const char* const title = closed ? "requests at once" : "requests a second";
    add_panel(findings, lines,
              {title, "requests/s", "latency ms, mean", "ms", rate,
               [](const LoadFigures& of) { return of.latency_ms.mean; },
               bound_at(findings.load.slo.latency_ms)},
              figure);
    add_panel(findings, lines,
              {title, "tokens/s", "latency ms, mean", "ms", tokens,
               [](const LoadFigures& of) { return of.latency_ms.mean; }},
              figure);
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "load-curve";
  figure.finding = first_sentence(findings);
  figure.caption =
      "Each line is an arm; along it the load grows. Where it rises without moving to the right, "
      "more "
      "load costs time and gives nothing. Bars are 95 % intervals over runs.";
  figure.legend = arm_legend(findings, findings.study.arms, true);
  figure.tables = {load_table(findings)};
  return figure;
}

std::optional<Figure> load_latency_figure(const Findings& findings) {
  if (findings.load.points.empty()) return std::nullopt;
  Figure figure;
  for (const bool closed : {true, false}) {
    const auto lines = load_lines(findings, closed);
    const Value x = [](const LoadFigures& of) {
      return std::optional(OverRuns{.mean = load_of(of.point)});
    };
    const char* const label = closed ? "requests at once" : "requests offered a second";
    add_panel(
        findings, lines,
        {"to the first token", label, "TTFT ms, p50", "ms", x,
         [](const LoadFigures& of) { return of.ttft_ms.p50; }, bound_at(findings.load.slo.ttft_ms)},
        figure);
    add_panel(
        findings, lines,
        {"between tokens", label, "ITL ms, mean", "ms", x,
         [](const LoadFigures& of) { return of.itl_ms.mean; }, bound_at(findings.load.slo.itl_ms)},
        figure);
    add_panel(findings, lines,
              {"speed", label, "tokens/s", "tokens/s", x,
               [](const LoadFigures& of) { return std::optional(of.tokens_per_s); }},
              figure);
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "load-latency";
  figure.finding = "Time to the first token, time between tokens and speed by load";
  figure.caption =
      "Each line is an arm, over the load that it was offered; a level line is a bound that "
      "requests "
      "have to keep. Bars are 95 % intervals over runs.";
  figure.legend = arm_legend(findings, findings.study.arms, true);
  return figure;
}

std::optional<Figure> load_timeline_figure(const Findings& findings, const PlottedRows& plotted) {
  constexpr size_t kMostPanels = 12;
  Figure figure;
  std::vector<std::string> arms;
  for (size_t stratum = 0; stratum < findings.strata.size(); ++stratum) {
    for (const bool of_tokens : {false, true}) {
      plot::XyPanel panel;
      int64_t failed = 0;
      for (const LoadTimeline& timeline : plotted.load) {
        if (timeline.stratum != stratum) continue;
        const auto& values = of_tokens ? timeline.tokens_per_s : timeline.in_flight;
        plot::Series series{
            timeline.arm, arm_style(findings, timeline.arm), plot::Join::kSteps, {}, {}};
        for (size_t i = 0; i < values.size(); ++i) {
          const double at_s = timeline.slice_s * static_cast<double>(i);
          series.points.push_back({at_s, values[i]});
          if (i >= timeline.failed.size() || timeline.failed[i] == 0) continue;
          failed += timeline.failed[i];
          series.marks.push_back({at_s, values[i], plot::Around::kCross,
                                  fmt::format("{}: {} failed at {} s", timeline.arm,
                                              timeline.failed[i], format_significant(at_s, 3))});
        }
        arms.push_back(timeline.arm);
        panel.series.push_back(std::move(series));
      }
      if (panel.series.empty() || figure.panels.size() == kMostPanels) continue;
      panel.title = panel_title(stratum_label(findings, stratum));
      panel.x_label = "seconds of the run";
      panel.y_label = of_tokens ? "tokens/s" : "requests in flight";
      panel.alt = fmt::format("{} over the first run at {}; {} failed.", panel.y_label,
                              stratum_label(findings, stratum), counted(failed, "request"));
      panel.x_start = panel.y_start = plot::Scale::Start::kZero;
      figure.panels.push_back(draw(panel));
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "load-timeline";
  figure.finding = "Requests in flight and tokens a second over the first run of each load";
  figure.caption =
      "Each step is a sixtieth of the run. A level that stays is a server that keeps up; one that "
      "rises to the end is a queue. A cross marks requests that failed.";
  figure.legend = arm_legend(findings, arms, true);
  return figure;
}

}  // namespace assay
