// The judgement as data.
#include "analysis/findings/json_parts.h"
#include "routing/route.h"

namespace assay {
namespace {

Json place_json(const Route& route, size_t stratum) {
  Json json = stratum_json(route.strata[stratum]);
  json["prompt_tokens"] = {route.prompts[stratum].shortest, route.prompts[stratum].longest};
  return json;
}

Json trigger_json(const PolicyTrigger& trigger) {
  return {{"on", trigger_name(trigger.kind)},
          {"allowed", trigger.allowed},
          {"window", trigger.window > 0 ? Json(trigger.window) : Json()},
          {"limit_ms", optional_json(trigger.limit_ms)},
          {"source", trigger.source}};
}

Json rule_json(const PolicyRule& rule) {
  Json json = {{"model", rule.model},
               {"phase", phase_name(rule.phase)},
               {"batch", rule.batch},
               {"new_tokens", {rule.new_tokens, rule.most_new_tokens()}},
               {"prompt_tokens", {rule.shortest, rule.longest}},
               {"arm", text_json(rule.arm)},
               {"fallback", text_json(rule.fallback)},
               {"abstains", rule.abstains},
               {"because", text_json(rule.because)}};
  json["triggers"] = Json::array();
  for (const PolicyTrigger& trigger : rule.triggers) {
    json["triggers"].push_back(trigger_json(trigger));
  }
  json["evidence"] = Json::array();
  for (const RuleEvidence& evidence : rule.evidence) {
    json["evidence"].push_back({{"scenario", evidence.scenario},
                                {"new_tokens", evidence.new_tokens},
                                {"prompt_tokens", {evidence.shortest, evidence.longest}},
                                {"verdict", evidence.verdict},
                                {"ratio", optional_json(evidence.ratio)},
                                {"interval", interval_json(evidence.interval)},
                                {"process_range", interval_json(evidence.process_range)},
                                {"rows", evidence.rows},
                                {"mean_ms", optional_json(evidence.mean_ms)},
                                {"p99_ms", optional_json(evidence.p99_ms)},
                                {"fallback_mean_ms", optional_json(evidence.fallback_mean_ms)},
                                {"fallback_p99_ms", optional_json(evidence.fallback_p99_ms)},
                                {"compile_ms", optional_json(evidence.compile_ms)}});
  }
  return json;
}

Json policy_json(const Policy& policy) {
  Json json = {{"version", kPolicyVersion},
               {"study", policy.study},
               {"measured_at", text_json(policy.measured_at)},
               {"plan_sha256", text_json(policy.plan_sha256)}};
  json["identity"] = Json::array();
  for (const auto& [axis, value] : policy.identity) {
    json["identity"].push_back({{"axis", axis}, {"value", value}});
  }
  json["fallback"] = text_json(policy.fallback);
  json["rules"] = Json::array();
  for (const PolicyRule& rule : policy.rules) json["rules"].push_back(rule_json(rule));
  json["not_measured"] = policy.not_measured;
  return json;
}

Json choice_json(const Route& route, const StratumChoice& choice) {
  Json json = place_json(route, choice.stratum);
  json["decision"] = decision_name(choice.decision);
  json["arm"] = text_json(choice.arm);
  json["safe"] = text_json(choice.safe);
  json["abstains"] = choice.abstains;
  json["because"] = text_json(choice.because);
  json["ratio"] = optional_json(choice.ratio);
  json["interval"] = interval_json(choice.interval);
  json["process_range"] = interval_json(choice.process_range);
  json["proven"] = Json::array();
  for (const ProvenArm& proven : choice.proven) {
    json["proven"].push_back({{"arm", proven.arm},
                              {"ratio", proven.ratio},
                              {"interval", interval_json(proven.interval)},
                              {"process_range", interval_json(proven.process_range)}});
  }
  return json;
}

Json validation_json(const std::optional<Optimism>& validation) {
  if (!validation) return nullptr;
  if (!validation->absent.empty()) return {{"absent", validation->absent}};
  return {{"unit", validation->unit},
          {"units_a_half", validation->units},
          {"strata", validation->strata},
          {"strata_that_differ", validation->differ},
          {"broken", validation->broken},
          {"in_sample", validation->in_sample},
          {"out_of_sample", validation->out_of_sample},
          {"optimism", validation->optimism},
          {"interval", interval_json(validation->interval)}};
}

}  // namespace

Json route_to_json(const Route& route) {
  Json json = {{"schema_version", kRouteSchemaVersion},
               {"study", route.study},
               {"baseline", route.baseline},
               {"rows", route.rows},
               {"options",
                {{"margin", route.options.margin},
                 {"alpha", route.options.alpha},
                 {"confidence", kConfidence},
                 {"resamples", route.options.resamples},
                 {"seed", route.options.seed}}},
               {"policy_given", route.policy_given},
               {"policy", policy_json(route.policy)}};
  json["strata"] = Json::array();
  for (const StratumChoice& choice : route.choices) {
    json["strata"].push_back(choice_json(route, choice));
  }
  json["barred"] = Json::array();
  for (const BarredArm& barred : route.barred) {
    Json one = place_json(route, barred.stratum);
    one["arm"] = barred.arm;
    one["reason"] = barred.reason;
    json["barred"].push_back(std::move(one));
  }
  json["validation"] = validation_json(route.validation);
  json["simulation"] =
      route.simulation == nullptr ? Json() : simulation_to_json(*route.simulation, route.policy);
  json["differs"] = route.differs;
  json["failures"] = route.failures();
  return json;
}

}  // namespace assay
