// The judgement as data, and the replay in it.
#include "analysis/findings/record_entries.h"
#include "routing/route.h"
#include "routing/simulate.h"

namespace assay {
namespace {

constexpr auto kPrompts = [](const auto& of, const Route& in) -> const PromptRange& {
  return in.prompts[of.stratum];
};
constexpr auto kIfAny = [](int64_t count) {
  return count > 0 ? std::optional(count) : std::nullopt;
};

}  // namespace

template <>
struct Record<PolicyTrigger> {
  using T = PolicyTrigger;
  static constexpr auto kMembers =
      std::tuple(field_as("on", &T::kind, trigger_name), field("allowed", &T::allowed),
                 field_as("window", &T::window, kIfAny), field("limit_ms", &T::limit_ms),
                 field("source", &T::source));
};
template <>
struct Record<RuleEvidence> {
  using T = RuleEvidence;
  static constexpr auto kMembers = std::tuple(
      field("scenario", &T::scenario), field("new_tokens", &T::new_tokens),
      array_of("prompt_tokens", &T::shortest, &T::longest), field("verdict", &T::verdict),
      field("ratio", &T::ratio), field("interval", &T::interval),
      field("process_range", &T::process_range), field("rows", &T::rows),
      field("mean_ms", &T::mean_ms), field("p99_ms", &T::p99_ms),
      field("fallback_mean_ms", &T::fallback_mean_ms),
      field("fallback_p99_ms", &T::fallback_p99_ms), field("compile_ms", &T::compile_ms));
};
template <>
struct Record<PolicyRule> {
  using T = PolicyRule;
  static constexpr auto kMembers =
      std::tuple(field("model", &T::model), field("phase", &T::phase), field("batch", &T::batch),
                 array_of("new_tokens", &T::new_tokens, &T::most_new_tokens),
                 array_of("prompt_tokens", &T::shortest, &T::longest), text_or_null("arm", &T::arm),
                 text_or_null("fallback", &T::fallback), field("abstains", &T::abstains),
                 text_or_null("because", &T::because), field("triggers", &T::triggers),
                 field("evidence", &T::evidence), unwritten(&T::new_tokens_span));
};
template <>
struct Record<Policy> {
  using T = Policy;
  using Axis = std::pair<std::string, std::string>;
  static constexpr auto kMembers = std::tuple(
      constant("version", kPolicyVersion), field("study", &T::study),
      text_or_null("measured_at", &T::measured_at), text_or_null("plan_sha256", &T::plan_sha256),
      list_of("identity", &T::identity, field("axis", &Axis::first), field("value", &Axis::second)),
      text_or_null("fallback", &T::fallback), field("rules", &T::rules),
      field("not_measured", &T::not_measured));
};
template <>
struct Record<ProvenArm> {
  using T = ProvenArm;
  static constexpr auto kMembers =
      std::tuple(field("arm", &T::arm), field("ratio", &T::ratio), field("interval", &T::interval),
                 field("process_range", &T::process_range));
};
template <>
struct Record<StratumChoice> {
  using T = StratumChoice;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, derived("prompt_tokens", kPrompts),
                 field("decision", &T::decision), text_or_null("arm", &T::arm),
                 text_or_null("safe", &T::safe), field("abstains", &T::abstains),
                 text_or_null("because", &T::because), field("ratio", &T::ratio),
                 field("interval", &T::interval), field("process_range", &T::process_range),
                 field("proven", &T::proven), unwritten(&T::slower));
};
template <>
struct Record<BarredArm> {
  using T = BarredArm;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, derived("prompt_tokens", kPrompts),
                 field("arm", &T::arm), field("reason", &T::reason));
};
template <>
struct Record<Optimism> {
  using T = Optimism;
  static constexpr auto kAbsent = [](const T& of) { return !of.absent.empty(); };
  static constexpr auto kMembers =
      std::tuple(where(kAbsent, field("absent", &T::absent)),
                 where(std::not_fn(kAbsent), field("unit", &T::unit),
                       field("units_a_half", &T::units), field("strata", &T::strata),
                       field("strata_that_differ", &T::differ), field("broken", &T::broken),
                       field("in_sample", &T::in_sample), field("out_of_sample", &T::out_of_sample),
                       field("optimism", &T::optimism), field("interval", &T::interval)));
};
template <>
struct Record<SimulatedFigure> {
  using T = SimulatedFigure;
  static constexpr auto kMembers =
      std::tuple(field("mean", &T::mean), field("interval", &T::interval));
};
template <>
struct Record<SimulatedStrategy> {
  using T = SimulatedStrategy;
  static constexpr auto kMembers =
      std::tuple(field("name", &T::name), field("takes", &T::takes),
                 text_or_null("unavailable", &T::unavailable), field("lost", &T::lost),
                 field("compilations", &T::compilations), field("p50_ms", &T::p50_ms),
                 field("p95_ms", &T::p95_ms), field("p99_ms", &T::p99_ms),
                 field("requests_per_s", &T::per_s), field("regret", &T::regret));
};
template <>
struct Record<SimulatedTrigger> {
  using T = SimulatedTrigger;
  static constexpr auto kRule = [](const T& of, const Route& in) {
    return of.rule ? &in.policy.rules[*of.rule] : nullptr;
  };
  static constexpr auto kMembers =
      std::tuple(field("strategy", &T::strategy), field("rule", &T::rule),
                 field_as("on", &T::kind, trigger_name), field("fallback", &T::fallback),
                 field("replays", &T::fired), field("diverted_requests", &T::diverted),
                 part(kRule, field("phase", &PolicyRule::phase), field("batch", &PolicyRule::batch),
                      array_of("prompt_tokens", &PolicyRule::shortest, &PolicyRule::longest)));
};
template <>
struct Record<Simulation> {
  using T = Simulation;
  using Outside = std::pair<std::string, int64_t>;
  static constexpr auto kMembers = std::tuple(
      field("trace", &T::trace), field("hash", &T::hash), field("model", &T::model),
      field("requests", &T::requests), field("replayed", &T::replayed),
      part(&T::options, field("replays", &SimulationOptions::replays),
           field("seed", &SimulationOptions::seed)),
      field("units", &T::units), field("asked_per_s", &T::asked_per_s), field("phases", &T::phases),
      list_of("outside", &T::outside, field("because", &Outside::first),
              field("requests", &Outside::second)),
      field("strategies", &T::strategies), field("triggers", &T::triggers));
};
template <>
struct Record<Route> {
  using T = Route;
  static constexpr auto kMembers =
      std::tuple(constant("schema_version", kRouteSchemaVersion), field("study", &T::study),
                 field("baseline", &T::baseline), field("rows", &T::rows),
                 nested("options", part(&T::options, field("margin", &AnalysisOptions::margin),
                                        field("alpha", &AnalysisOptions::alpha),
                                        constant("confidence", kConfidence),
                                        field("resamples", &AnalysisOptions::resamples),
                                        field("seed", &AnalysisOptions::seed))),
                 field("policy_given", &T::policy_given), field("policy", &T::policy),
                 field("strata", &T::choices), field("barred", &T::barred),
                 field("validation", &T::validation), field("simulation", &T::simulation),
                 field("differs", &T::differs), derived("failures", &T::failures),
                 unwritten(&T::strata, &T::prompts, &T::compiled_arms, &T::refuted));
};

Json route_to_json(const Route& route) {
  return record_to_json(route, route);
}

}  // namespace assay
