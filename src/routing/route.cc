// A study's rows to a policy.
#include "routing/route.h"

#include <algorithm>

#include "analysis/compare/compare.h"
#include "analysis/named/void_comparisons.h"
#include "analysis/rows/summary.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "routing/derive.h"
#include "routing/given_policy.h"
#include "routing/handover.h"
#include "routing/merge.h"
#include "routing/simulate.h"
#include "routing/triggers.h"
#include "routing/unmeasured.h"

namespace assay {
namespace {

std::vector<BarredArm> barred_arms(const Samples& samples, const AnalysisOptions& options) {
  std::vector<BarredArm> barred;
  for (const Group& group : samples.groups) {
    std::string reason = reason_barred(group, options);
    if (reason.empty()) continue;
    barred.push_back({group.stratum, samples.arms[group.arm], std::move(reason)});
  }
  return barred;
}

// The reason why the rule has no trigger of p99, in a line for the policy; empty: it has one, or
// needs none.
std::string p99_of_rule(const PolicyRule& rule, const Samples& samples) {
  if (rule.fallback.empty()) return "";
  return p99_undecided(groups_of_rule(samples, rule));
}

// Rules that differ in new tokens alone, and lack p99 for one reason, share a line.
std::vector<std::string> undecided_p99(const Policy& policy, const Samples& samples) {
  struct Line {
    std::string place;
    std::string why;
    std::vector<std::string> new_tokens;
  };
  std::vector<Line> lines;
  for (const PolicyRule& rule : policy.rules) {
    const std::string why = p99_of_rule(rule, samples);
    if (why.empty()) continue;
    const std::string lengths = rule.shortest == rule.longest
                                    ? std::to_string(rule.shortest)
                                    : fmt::format("{}-{}", rule.shortest, rule.longest);
    const std::string place = fmt::format("{} in {} of {}, {} prompt tokens, batch {}", rule.arm,
                                          phase_name(rule.phase), rule.model, lengths, rule.batch);
    auto line = std::ranges::find_if(
        lines, [&](const Line& one) { return one.place == place && one.why == why; });
    if (line == lines.end()) line = lines.insert(lines.end(), {place, why, {}});
    if (rule.new_tokens > 0) line->new_tokens.push_back(new_tokens_text(rule));
  }
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    const std::string tokens = line.new_tokens.empty()
                                   ? std::string()
                                   : fmt::format(", new tokens {}", join(line.new_tokens, ", "));
    texts.push_back(fmt::format("p99 of {}{}: {}", line.place, tokens, line.why));
  }
  return texts;
}

Policy derive_policy(const Bundle& bundle, const Samples& samples,
                     const std::vector<StratumChoice>& choices) {
  Policy policy;
  policy.study = summarize(bundle).name;
  policy.measured_at = text_member(bundle.manifest, "started_at");
  policy.plan_sha256 = text_member(bundle.manifest, "plan_sha256");
  policy.identity = policy_identity(bundle);
  policy.fallback = common_fallback(choices);
  policy.rules = rules_of(samples, choices);
  policy.not_measured = unmeasured(samples);
  if (!bundle.complete) {
    policy.not_measured.insert(
        policy.not_measured.begin(),
        fmt::format("the rest of the study: the run is unfinished, {} were measured",
                    counted(std::ssize(bundle.rows), "row")));
  }
  for (std::string& one : unmeasured_handovers(samples, policy.rules)) {
    policy.not_measured.push_back(std::move(one));
  }
  for (std::string& line : undecided_p99(policy, samples)) {
    policy.not_measured.push_back(std::move(line));
  }
  return policy;
}

// The model that the trace's requests are for.
Result<std::string> traced_model(const TraceToReplay& trace, const Samples& samples) {
  const std::vector<std::string> models = models_of(samples);
  if (trace.model.empty() && models.size() == 1) return models.front();
  if (trace.model.empty()) {
    return bad_input("route: expected --model, one of {}, for the trace, found none",
                     join(models, ", "));
  }
  if (std::ranges::find(models, trace.model) != models.end()) return trace.model;
  return bad_input("--model: expected one of {}, found {}{}", join(models, ", "),
                   quoted_excerpt(trace.model), nearest_hint(trace.model, models));
}

Status replay_trace(const TraceToReplay& trace, const Samples& samples, ThreadPool* pool,
                    Route& route) {
  ASSAY_TRY(const std::string model, traced_model(trace, samples));
  const ReplayData data(samples, model, route.options);
  ASSAY_TRY(const PlannedTrace plan, plan_trace(data, route, model, samples.arms, trace.requests));
  const SimulationOptions options{trace.replays, route.options.seed};
  auto simulation = std::make_shared<Simulation>(simulate(data, route.policy, plan, options, pool));
  simulation->model = model;
  simulation->trace = trace.name;
  simulation->hash = trace_hash(trace.requests);
  simulation->requests = std::ssize(trace.requests);
  route.simulation = std::move(simulation);
  return {};
}

// The part of a route that needs no choice of an arm: the study's rows and strata.
Route unchosen_route(const StudySummary& study, const Samples& samples,
                     const AnalysisOptions& options) {
  Route route;
  route.options = options;
  route.study = study.name;
  route.baseline = study.baseline;
  route.rows = study.rows;
  route.strata = samples.strata;
  route.prompts = samples.prompts;
  route.barred = barred_arms(samples, options);
  for (const Group& group : samples.groups) {
    if (group.execution() == Execution::kCompiled) {
      route.compiled_arms.insert(samples.arms[group.arm]);
    }
  }
  return route;
}

}  // namespace

Route route_of_findings(const Bundle& bundle, const Samples& samples, const Findings& findings) {
  const StudySummary study = summarize(bundle);
  Route route = unchosen_route(study, samples, findings.options);
  const std::vector<std::string> reasons = void_comparisons(bundle, study, samples);
  route.choices = choices_of({samples, !study.order.empty(), reasons, findings.options}, findings);
  route.policy = derive_policy(bundle, samples, route.choices);
  return route;
}

std::vector<std::string> Route::failures() const {
  std::vector<std::string> all;
  for (const StratumChoice& choice : choices) {
    if (!choice.safe.empty()) continue;
    all.push_back(fmt::format("{}: {}", stratum_text(strata[choice.stratum]), choice.because));
  }
  all.insert(all.end(), refuted.begin(), refuted.end());
  return all;
}

Result<Route> judge_route(const Bundle& bundle, const RouteRequest& request, ThreadPool* pool) {
  const StudySummary study = summarize(bundle);
  ASSAY_TRY(const Samples samples, group_rows(bundle, study.arms));
  if (!samples.strata.empty() && std::ranges::all_of(samples.strata, [](const Stratum& of) {
        return of.phase == Phase::kLoad;
      })) {
    return bad_input(
        "{}: expected rows of single requests, which a policy routes, found those of load",
        bundle.folder.string());
  }
  Route route = unchosen_route(study, samples, request.analysis);
  const std::vector<std::string> reasons = void_comparisons(bundle, study, samples);
  const ChoiceInputs inputs{samples, !study.order.empty(), reasons, route.options};
  route.choices = choose_arms(inputs, pool);
  route.policy_given = request.policy.has_value();
  if (request.policy) {
    const auto identity = policy_identity(bundle);
    const std::string mismatch = identity_mismatch(*request.policy, identity);
    if (!mismatch.empty()) {
      return bad_input("{}: expected the identity that the policy states, found another: {}",
                       bundle.folder.string(), mismatch);
    }
    ASSAY_CHECK(check_given_policy(*request.policy, samples, route));
    route.policy = *request.policy;
    hold_against_rows(samples, identity, route);
  } else {
    route.policy = derive_policy(bundle, samples, route.choices);
    route.validation = judge_out_of_sample(inputs, route.choices, pool);
  }
  if (request.trace) ASSAY_CHECK(replay_trace(*request.trace, samples, pool, route));
  return route;
}

}  // namespace assay
