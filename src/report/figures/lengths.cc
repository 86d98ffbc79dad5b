// Along decode length and model size: where an arm stops, or starts, to pay.
#include <map>

#include "base/text/counts.h"
#include "base/text/listed.h"
#include "report/figures/parts.h"
#include "report/plot/xy_plot.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

const plot::RuleAt kAsLong{1, "as long as the baseline"};

// "By the means, static is slower in total from 40 new tokens on; the gain in prefill stops
// mattering at 9 to 20 new tokens for dynamic".
std::string split_finding(const Findings& findings) {
  std::map<std::string, plot::Extent> even;
  std::map<std::string, plot::Extent> stops;
  for (const PhaseSplit& split : findings.splits) {
    if (split.breaks_even) even[split.arm].add(*split.breaks_even);
    if (split.stops_mattering) stops[split.arm].add(*split.stops_mattering);
  }
  const auto length = [](const plot::Extent& extent) {
    return new_tokens_text(extent.low(), extent.high());
  };
  std::vector<std::string> slower;
  for (const auto& [arm, extent] : even) {
    slower.push_back(fmt::format("{} is slower in total from {} on", arm, length(extent)));
  }
  std::vector<std::string> gains;
  for (const auto& [arm, extent] : stops) {
    // A gain that stops mattering at the first token matters nowhere.
    if (even.contains(arm) || extent.high() <= 1) continue;
    gains.push_back(fmt::format("{} for {}", length(extent), arm));
  }
  if (slower.empty() && gains.empty())
    return "No break-even length: no arm is shown to gain in prefill and lose in decoding";
  std::string text = slower.empty() ? "" : "By the means, " + listed(slower, kMostListed);
  if (gains.empty()) return text;
  text += slower.empty() ? "The" : "; the";
  return text + " gain in prefill stops mattering at " + listed(gains, kMostListed);
}

plot::Series split_series(const Findings& findings, const PhaseSplit& split) {
  plot::Series series{split.arm, arm_style(findings, split.arm), plot::Join::kStraight, {}, {}};
  for (const SplitAt& at : split.at) {
    const auto x = static_cast<double>(at.new_tokens);
    series.points.push_back({x, at.ratio});
    plot::Mark mark{x, at.ratio, plot::Around::kNothing,
                    fmt::format("{}, {}: {}{}", split.arm, counted(at.new_tokens, "new token"),
                                ratio_text(at.ratio, at.ratio_interval),
                                at.extrapolated ? ", extrapolated" : "")};
    if (at.extrapolated) mark.size = plot::MarkSize::kNone;
    mark.y_interval = ratio_span(at.ratio_interval);
    series.marks.push_back(std::move(mark));
  }
  return series;
}

std::string split_text(const PhaseSplit& split) {
  std::string text = split.arm;
  if (split.breaks_even)
    text += fmt::format(" breaks even at {} tokens", whole_tokens(*split.breaks_even));
  if (split.stops_mattering) {
    text += fmt::format("{} stops mattering at {} tokens", split.breaks_even ? "," : "",
                        whole_tokens(*split.stops_mattering));
  }
  return text;
}

std::string size_finding(const Findings& findings) {
  std::map<std::string, plot::Extent> crossings;
  for (const SizeAnalysis& size : findings.sizes) {
    for (const SizeCrossover& crossover : size.crossovers) {
      if (crossover.crossover) crossings[crossover.arm].add(*crossover.crossover);
    }
  }
  if (crossings.empty()) {
    return fmt::format("No arm changes places with {} between the smallest and the largest model",
                       findings.study.baseline);
  }
  std::vector<std::string> parts;
  for (const auto& [arm, extent] : crossings) {
    const std::string low = format_count(extent.low());
    const std::string high = format_count(extent.high());
    parts.push_back(fmt::format("{} at {}", arm, low == high ? low : low + " to " + high));
  }
  return fmt::format("Along model size ({}), these arms and {} change places: {}",
                     findings.size_unit, findings.study.baseline, listed(parts, kMostListed));
}

plot::Series size_series(const Findings& findings, const SizeCrossover& crossover) {
  plot::Series series{
      crossover.arm, arm_style(findings, crossover.arm), plot::Join::kStraight, {}, {}};
  for (const SizeRatio& ratio : crossover.ratios) {
    series.points.push_back({ratio.size, ratio.ratio});
    plot::Mark mark{ratio.size, ratio.ratio, plot::Around::kNothing,
                    fmt::format("{}, {}: {}", crossover.arm, ratio.model,
                                ratio_text(ratio.ratio, ratio.interval, ratio.process_range))};
    mark.y_interval = ratio_span(ratio.interval);
    series.marks.push_back(std::move(mark));
  }
  return series;
}

}  // namespace

std::optional<Figure> split_figure(const Findings& findings) {
  Figure figure;
  std::vector<std::string> arms;
  for (auto split = findings.splits.begin(); split != findings.splits.end();) {
    const size_t stratum = split->prefill_stratum;
    plot::XyPanel panel;
    std::vector<std::string> texts;
    for (; split != findings.splits.end() && split->prefill_stratum == stratum; ++split) {
      panel.series.push_back(split_series(findings, *split));
      texts.push_back(split_text(*split));
      arms.push_back(split->arm);
    }
    const std::string label = stratum_label(findings, stratum);
    panel.title = panel_title(label);
    panel.alt = fmt::format("Whole time over {}'s by decode length, behind {}: {}.",
                            findings.study.baseline, label, join(texts, "; "));
    panel.x_label = "new tokens";
    panel.y_label = "prefill and decode: ratio to the baseline";
    panel.y_rule = kAsLong;
    figure.panels.push_back(draw(panel));
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "phase-split";
  figure.finding = split_finding(findings);
  figure.caption = fmt::format(
      "Prefill and decode together, by the number of new tokens: an arm's whole time over "
      "{}'s. Where a line crosses 1, the arm breaks even. Where it has no marks, no decode as "
      "long was measured. Where a line runs flat, the prefill no longer "
      "matters.",
      findings.study.baseline);
  figure.legend = arm_legend(findings, arms, true);
  figure.legend.push_back(rule_legend(kAsLong));
  figure.tables = split_section(findings).tables;
  return figure;
}

std::optional<Figure> size_figure(const Findings& findings) {
  Figure figure;
  std::vector<std::string> arms;
  for (const SizeAnalysis& size : findings.sizes) {
    plot::XyPanel panel;
    std::vector<std::string> texts;
    for (const SizeCrossover& crossover : size.crossovers) {
      panel.series.push_back(size_series(findings, crossover));
      texts.push_back(fmt::format("{} {}", crossover.arm,
                                  crossover.crossover
                                      ? "crosses at " + format_count(*crossover.crossover)
                                      : "does not cross"));
      arms.push_back(crossover.arm);
    }
    if (panel.series.empty()) continue;
    panel.title = panel_title(size_place(findings, size));
    panel.alt = fmt::format("Ratio to {} by model size, {}: {}.", findings.study.baseline,
                            size_place(findings, size), join(texts, "; "));
    panel.x_label = findings.size_unit;
    panel.y_label = "ratio of mean times to the baseline";
    panel.y_rule = kAsLong;
    figure.panels.push_back(draw(panel));
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.id = "model-size";
  figure.finding = size_finding(findings);
  figure.caption = fmt::format(
      "Each line is an arm's mean time over {}'s along the size of the model; the bars are "
      "intervals. Where a line crosses 1, the two change places.",
      findings.study.baseline);
  figure.legend = arm_legend(findings, arms, true);
  figure.legend.push_back(rule_legend(kAsLong));
  figure.tables = size_section(findings).tables;
  return figure;
}

}  // namespace assay
