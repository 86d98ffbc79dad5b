// A replay as data.
#include "analysis/findings/json_parts.h"
#include "routing/route.h"
#include "routing/simulate.h"

namespace assay {
namespace {

Json figure_json(const std::optional<SimulatedFigure>& figure) {
  if (!figure) return nullptr;
  return {{"mean", figure->mean}, {"interval", interval_json(figure->interval)}};
}

}  // namespace

Json simulation_to_json(const Simulation& simulation, const Policy& policy) {
  Json json = {{"trace", simulation.trace},
               {"hash", simulation.hash},
               {"model", simulation.model},
               {"requests", simulation.requests},
               {"replayed", simulation.replayed},
               {"replays", simulation.options.replays},
               {"seed", simulation.options.seed},
               {"units", simulation.units},
               {"asked_per_s", optional_json(simulation.asked_per_s)}};
  json["phases"] = Json::array();
  for (const Phase phase : simulation.phases) json["phases"].push_back(phase_name(phase));
  json["outside"] = Json::array();
  for (const auto& [why, count] : simulation.outside) {
    json["outside"].push_back({{"because", why}, {"requests", count}});
  }
  json["strategies"] = Json::array();
  for (const SimulatedStrategy& strategy : simulation.strategies) {
    json["strategies"].push_back({{"name", strategy.name},
                                  {"takes", strategy.takes},
                                  {"unavailable", text_json(strategy.unavailable)},
                                  {"lost", strategy.lost},
                                  {"compilations", strategy.compilations},
                                  {"p50_ms", figure_json(strategy.p50_ms)},
                                  {"p95_ms", figure_json(strategy.p95_ms)},
                                  {"p99_ms", figure_json(strategy.p99_ms)},
                                  {"requests_per_s", figure_json(strategy.per_s)},
                                  {"regret", figure_json(strategy.regret)}});
  }
  json["triggers"] = Json::array();
  for (const SimulatedTrigger& trigger : simulation.triggers) {
    Json& of = json["triggers"].emplace_back();
    of = {{"strategy", trigger.strategy},     {"rule", nullptr},
          {"on", trigger_name(trigger.kind)}, {"fallback", trigger.fallback},
          {"replays", trigger.fired},         {"diverted_requests", trigger.diverted}};
    if (!trigger.rule) continue;
    const PolicyRule& rule = policy.rules[*trigger.rule];
    of["rule"] = *trigger.rule;
    of["phase"] = phase_name(rule.phase);
    of["batch"] = rule.batch;
    of["prompt_tokens"] = {rule.shortest, rule.longest};
  }
  return json;
}

}  // namespace assay
