// Strategies beside one another, as a replayed trace has them.
#include "report/judgements/replay_tables.h"

#include <cmath>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/judgements/route_tables.h"

namespace assay {

Table strategy_table(const Simulation& simulation, bool for_screen) {
  Table table{.columns = columns_of(
                  "<strategy|<takes|p50_ms|p95_ms|p99_ms|requests_per_s|lost|compiles|regret")};
  const auto cell = [](const std::optional<SimulatedFigure>& figure, bool with_interval) {
    if (!figure) return TableCell::absent();
    const auto text = [](double value) { return format_significant(value, 3); };
    std::string shown = text(figure->mean);
    if (figure->interval && with_interval) {
      shown += fmt::format(" [{}, {}]", text(figure->interval->low), text(figure->interval->high));
    }
    return TableCell(std::move(shown));
  };
  const auto percent = [](const std::optional<SimulatedFigure>& figure) {
    if (!figure) return TableCell::absent();
    // The sum with 0.0 removes the minus of -0.0.
    const auto text = [](double share) {
      return fmt::format("{:.1f}", std::round(share * 1000) / 10 + 0.0);
    };
    std::string shown = text(figure->mean) + " %";
    if (figure->interval) {
      shown += fmt::format(" [{}, {}]", text(figure->interval->low), text(figure->interval->high));
    }
    return TableCell(std::move(shown));
  };
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    const bool there = strategy.unavailable.empty();
    table.rows.push_back({strategy.name, strategy.takes, cell(strategy.p50_ms, !for_screen),
                          cell(strategy.p95_ms, true), cell(strategy.p99_ms, true),
                          cell(strategy.per_s, !for_screen),
                          there ? TableCell(strategy.lost, 3) : TableCell::absent(),
                          there ? TableCell(strategy.compilations, 3) : TableCell::absent(),
                          percent(strategy.regret)});
  }
  if (for_screen) {
    for (const char* name : {"takes", "p95_ms"}) drop_column(name, table);
  }
  return table;
}

std::string replay_sentence(const Simulation& simulation) {
  std::vector<std::string> phases;
  for (const Phase phase : simulation.phases) phases.emplace_back(phase_name(phase));
  return fmt::format(
      "{} of {} (sha256 {}), {}, one server, first come first served; {} on {}, seed {}.",
      counted(simulation.replayed, "request"), simulation.trace, simulation.hash, listed(phases),
      counted(simulation.options.replays, "replay"),
      counted(static_cast<int64_t>(simulation.units), "resampled process", "resampled processes"),
      simulation.options.seed);
}

std::vector<std::string> replay_lines(const Route& route) {
  const Simulation& simulation = *route.simulation;
  std::vector<std::string> lines;
  for (const auto& [why, count] : simulation.outside) {
    lines.push_back(
        fmt::format("{} left out: {}", counted(count, "request is", "requests are"), why));
  }
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    if (strategy.unavailable.empty()) continue;
    lines.push_back(fmt::format("{} can't be had: {}", strategy.name, strategy.unavailable));
  }
  std::vector<std::string> overrun;
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    constexpr double kKeepsUp = 0.9;
    if (!strategy.per_s || !simulation.asked_per_s) continue;
    if (strategy.per_s->mean < kKeepsUp * *simulation.asked_per_s) overrun.push_back(strategy.name);
  }
  if (!overrun.empty()) {
    lines.push_back(fmt::format(
        "{} {} less than the {} requests a second that arrive: the queue grows to the end, and "
        "latencies with the length of the trace",
        join(overrun, ", "), overrun.size() == 1 ? "serves" : "serve",
        format_significant(*simulation.asked_per_s, 3)));
  }
  for (const SimulatedTrigger& trigger : simulation.triggers) {
    lines.push_back(
        fmt::format("{} of {} fired in {} of {} replays and sent {:.0f} requests on average to {}",
                    trigger_name(trigger.kind),
                    trigger.rule ? rule_place(route.policy.rules[*trigger.rule]) : trigger.strategy,
                    trigger.fired, simulation.options.replays, trigger.diverted, trigger.fallback));
  }
  return lines;
}

}  // namespace assay
