// Strategies that served one trace, beside each other.
#include <algorithm>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/judgements/replay_tables.h"
#include "routing/simulate.h"

namespace assay {
namespace {

using FigureOf = std::optional<SimulatedFigure> SimulatedStrategy::*;

// "7.1 [6.9, 7.3]"; of percent "7.1 % [6.9, 7.3]".
std::string simulated_text(const SimulatedFigure& figure, int digits, bool percent = false) {
  const double unit = percent ? 100 : 1;
  std::string text = format_significant(figure.mean * unit, digits) + (percent ? " %" : "");
  if (figure.interval) {
    text += fmt::format(" [{}, {}]", format_significant(figure.interval->low * unit, digits),
                        format_significant(figure.interval->high * unit, digits));
  }
  return text;
}

struct ReplayedPanel {
  const char* title;
  const char* x_label;
  FigureOf of;
  bool percent;  // else in its unit
  plot::Scale::Start start;
};
constexpr ReplayedPanel kReplayedPanels[] = {
    {"Regret", "% of mean latency over the best possible choice", &SimulatedStrategy::regret, true,
     plot::Scale::Start::kZero},
    {"Typical latency (p50)", "ms from arrival", &SimulatedStrategy::p50_ms, false,
     plot::Scale::Start::kFree},
    {"Latency p99", "ms from arrival", &SimulatedStrategy::p99_ms, false,
     plot::Scale::Start::kFree},
    {"Throughput", "requests served a second", &SimulatedStrategy::per_s, false,
     plot::Scale::Start::kZero},
};

// Absent: no strategy has that figure.
std::optional<plot::Panel> drawn_panel(const Simulation& simulation, const ReplayedPanel& of) {
  plot::RowsPanel panel;
  panel.title = of.title;
  panel.x_label = of.x_label;
  std::vector<std::string> said;
  for (size_t i = 0; i < simulation.strategies.size(); ++i) {
    const SimulatedStrategy& strategy = simulation.strategies[i];
    const std::optional<SimulatedFigure>& figure = strategy.*of.of;
    if (!figure) continue;
    plot::RowLine line;
    line.style = {i};
    const double unit = of.percent ? 100 : 1;
    line.value = figure->mean * unit;
    if (figure->interval) {
      line.interval = plot::Span{figure->interval->low * unit, figure->interval->high * unit};
    }
    line.text = line_text(simulated_text(*figure, 3, of.percent));
    line.tip = fmt::format("{}: {}", strategy.name, strategy.takes);
    said.push_back(fmt::format("{} {}", strategy.name, line.text));
    panel.rows.push_back({row_label(strategy.name), {std::move(line)}});
  }
  if (panel.rows.empty()) return std::nullopt;
  panel.alt = fmt::format("{} ({}): {}.", of.title, of.x_label, join(said, "; "));
  plot::Extent extent;
  add_extent(panel, extent);
  return draw(panel, plot::Scale::of(extent, of.start));
}

// "the policy's regret is 1.2 % [0.8, 1.5]; of the other strategies padded has the lowest, 3.4 %,
// and eager the highest, 42 %".
std::string strategies_finding(const Simulation& simulation) {
  const SimulatedStrategy* policy = nullptr;
  std::vector<const SimulatedStrategy*> others;
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    if (strategy.name == "policy") policy = &strategy;
    if (strategy.name != "policy" && strategy.regret) others.push_back(&strategy);
  }
  const auto regret = [](const SimulatedStrategy* of) { return of->regret->mean; };
  const auto text = [](const SimulatedStrategy& of) { return simulated_text(*of.regret, 2, true); };
  if (policy == nullptr || !policy->regret) {
    return fmt::format("The policy lost {} of {} requests, so that it has no regret",
                       policy == nullptr ? 0 : policy->lost, simulation.replayed);
  }
  std::string said = fmt::format("The policy's regret is {}", text(*policy));
  if (others.empty()) return said + "; no other strategy can be had";
  std::ranges::stable_sort(others, {}, regret);
  if (regret(others.front()) == regret(others.back())) {
    std::vector<std::string> names;
    for (const auto* other : others) names.push_back(other->name);
    return fmt::format("{}; {} {} {}", said, listed(names, kMostListed),
                       others.size() == 1 ? "has" : "have", text(*others.front()));
  }
  return fmt::format("{}; of the other strategies {} has the lowest, {}, and {} the highest, {}",
                     said, others.front()->name, text(*others.front()), others.back()->name,
                     text(*others.back()));
}

}  // namespace

std::optional<Figure> strategies_figure(const Route& route) {
  if (route.simulation == nullptr) return std::nullopt;
  const Simulation& simulation = *route.simulation;
  Figure figure;
  figure.id = "strategies";
  for (const ReplayedPanel& panel : kReplayedPanels) {
    if (auto drawn = drawn_panel(simulation, panel)) figure.panels.push_back(*std::move(drawn));
  }
  if (figure.panels.empty()) return std::nullopt;
  figure.finding = strategies_finding(simulation);
  figure.caption = fmt::format(
      "Each mark is a mean over {} replays of the trace, with the 95 % interval over "
      "resampled processes. Regret compares the mean latency with that of the best arm for every "
      "phase of every request. Strategies share each replay's draws, so that a difference between "
      "two of them can be sure although their intervals overlap. A strategy without a mark can't "
      "be had, or lost requests.",
      simulation.options.replays);
  Findings names;
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    names.study.arms.push_back(strategy.name);
  }
  std::vector<std::string> shown;
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    if (strategy.unavailable.empty()) shown.push_back(strategy.name);
  }
  figure.legend = arm_legend(names, shown, false);
  figure.tables.push_back(strategy_table(simulation, false));
  return figure;
}

}  // namespace assay
