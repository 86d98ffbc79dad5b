// Time and speed along the sizes of prompts and batches, and the number of new tokens.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/phase_answers.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kMostPanels = 12;

// A size that strata may differ in.
enum class Size { kPrompt, kBatch, kNewTokens };
constexpr std::array kSizes = {Size::kPrompt, Size::kBatch, Size::kNewTokens};

std::string_view size_label(Size size) {
  switch (size) {
    case Size::kPrompt:
      return "prompt tokens";
    case Size::kBatch:
      return "sequences in a batch";
    case Size::kNewTokens:
      break;
  }
  return "new tokens";
}

int64_t size_of(const Findings& findings, size_t stratum, Size size) {
  const Stratum& of = findings.strata[stratum];
  return size == Size::kPrompt  ? findings.prompts[stratum].shortest
         : size == Size::kBatch ? of.batch
                                : of.new_tokens;
}

// Strata that differ in one size alone, by it.
using Line = std::map<int64_t, size_t>;

// A line for each model and the other sizes. Strata of one size are of different prompts: no line.
std::vector<Line> lines_along(const Findings& findings, Phase phase, Size along) {
  std::map<std::tuple<std::string, int64_t, int64_t>, Line> lines;
  bool is_line = true;
  for (size_t s = 0; s < findings.strata.size(); ++s) {
    if (findings.strata[s].phase != phase) continue;
    std::vector<int64_t> others;
    for (const Size size : kSizes) {
      if (size != along) others.push_back(size_of(findings, s, size));
    }
    Line& line = lines[{findings.strata[s].model, others[0], others[1]}];
    is_line = line.emplace(size_of(findings, s, along), s).second && is_line;
  }
  std::vector<Line> found;
  for (auto& [key, line] : lines) {
    if (is_line && line.size() > 1) found.push_back(std::move(line));
  }
  return found;
}

const Latency* latency_of(const Findings& findings, size_t stratum, const std::string& arm) {
  for (const Latency& latency :
       std::ranges::equal_range(findings.latencies, stratum, {}, &Latency::stratum)) {
    if (latency.arm == arm && latency.mean) return &latency;
  }
  return nullptr;
}

// One arm's means, or its tokens a second, along a line.
plot::Series series_of(const Findings& findings, const Line& line, const std::string& arm,
                       bool of_rates) {
  plot::Series series{arm, arm_style(findings, arm), plot::Join::kStraight, {}, {}};
  for (const auto& [size, stratum] : line) {
    const Latency* latency = latency_of(findings, stratum, arm);
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

// The sizes that the line's strata share, or their model: "prompt_128 n64", "b4", "gpt2-25m".
std::string line_label(const Findings& findings, size_t stratum, Size along) {
  const Stratum& of = findings.strata[stratum];
  std::string label;
  if (along != Size::kPrompt) label += " " + of.scenario;
  if (along != Size::kNewTokens && of.new_tokens > 0) label += fmt::format(" n{}", of.new_tokens);
  if (along != Size::kBatch && of.batch > 1) label += fmt::format(" b{}", of.batch);
  return label.empty() ? of.model : label.substr(1);
}

std::optional<plot::XyPanel> panel_of(const Findings& findings, const Line& line, Size along,
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
  panel.title = panel_title(line_label(findings, line.begin()->second, along));
  panel.alt = fmt::format("{} by {}, {} to {}: {}.", what, size_label(along), line.begin()->first,
                          line.rbegin()->first, join(texts, "; "));
  panel.x_label = size_label(along);
  panel.y_label = what;
  return panel;
}

// "prefill: eager takes 3.65 times as long for 4.00 times as many prompt tokens (128 to 512)".
std::string growth_finding(const Findings& findings, Phase phase, const Line& line, Size along) {
  for (const std::string& arm : findings.study.arms) {
    const Latency* first = latency_of(findings, line.begin()->second, arm);
    const Latency* last = latency_of(findings, line.rbegin()->second, arm);
    if (first == nullptr || last == nullptr) continue;
    return fmt::format("{}: {} takes {} times as long for {} times as many {} ({} to {})",
                       phase_name(phase), arm, format_significant(*last->mean / *first->mean, 3),
                       format_significant(static_cast<double>(line.rbegin()->first) /
                                              static_cast<double>(line.begin()->first),
                                          3),
                       size_label(along), line.begin()->first, line.rbegin()->first);
  }
  return "";
}

Table growth_table(const Findings& findings, Phase phase) {
  Table table{"",
              {{"stratum", Align::kLeft},
               {"arm", Align::kLeft},
               {"mean_ms"},
               {"95% interval"},
               {"tokens/s"}},
              {}};
  for (const Latency& latency : findings.latencies) {
    if (findings.strata[latency.stratum].phase != phase) continue;
    table.rows.push_back({TableCell::of(stratum_label(findings, latency.stratum)),
                          TableCell::of(latency.arm), TableCell::of(latency.mean),
                          spread_cell(latency.mean_interval, latency.mean_process_range),
                          TableCell::of(tokens_per_second(findings, latency))});
  }
  return table;
}

}  // namespace

std::optional<Figure> growth_figure(const Findings& findings, Phase phase) {
  Figure figure;
  for (const Size along : kSizes) {
    for (const Line& line : lines_along(findings, phase, along)) {
      if (line.begin()->first <= 0) continue;
      for (const bool of_rates : {false, true}) {
        if (figure.panels.size() == kMostPanels) break;
        const auto panel = panel_of(findings, line, along, of_rates);
        if (!panel) continue;
        if (figure.finding.empty()) figure.finding = growth_finding(findings, phase, line, along);
        figure.panels.push_back(draw(*panel));
      }
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
