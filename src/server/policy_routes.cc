// Rules by shape, arms by the identity that the policy states of them.
#include "server/policy_routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/text/text.h"

namespace assay::server {
namespace {

Status check_arm(const Policy& policy, const std::string& arm, std::string_view dtype) {
  const std::pair<const char*, std::string> demands[] = {
      {"backend", "native"}, {"cache", "static"}, {"dtype", std::string(dtype)}};
  for (const auto& [axis, expected] : demands) {
    const std::string found = policy.stated(fmt::format("arms.{}.{}", arm, axis));
    if (found != expected) {
      return bad_input("policy: arm {}: {}: expected {}, found {}", quoted_excerpt(arm), axis,
                       expected, found.empty() ? "nothing" : quoted_excerpt(found));
    }
  }
  const std::string mode = policy.stated(fmt::format("arms.{}.compile_mode", arm));
  if (mode == "eager" || mode == "compiled") return {};
  return bad_input("policy: arm {}: compile_mode: expected eager or compiled, found {}",
                   quoted_excerpt(arm), mode.empty() ? "nothing" : quoted_excerpt(mode));
}

std::string range_text(int64_t least, int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{}-{}", least, most);
}

std::string shape_text(const PolicyRule& rule) {
  const std::string fresh =
      rule.phase == Phase::kPrefill ? "" : fmt::format(", {} new tokens", new_tokens_text(rule));
  return fmt::format("{}, batch {}{}, prompts of {}", phase_name(rule.phase), rule.batch, fresh,
                     range_text(rule.shortest, rule.longest));
}

}  // namespace

struct PolicyRoutes::State {
  Policy policy;
  std::string model;
  Tell tell;
  std::map<std::string, bool> compiled = {};  // by arm

  mutable std::mutex mutex = {};
  std::vector<RuleState> rules = {};   // as the policy has them
  std::vector<int64_t> stood_in = {};  // requests of each that were no event of it

  // Empty: no arm is safe.
  const std::string& arm_of(size_t rule) const {
    const PolicyRule& of = policy.rules[rule];
    return rules[rule].fired ? of.fallback : of.arm;
  }
};

Result<PolicyRoutes> PolicyRoutes::make(Policy policy, const std::string& model,
                                        std::string_view dtype, Tell tell) {
  std::set<std::string> arms = {policy.fallback};
  bool is_covered = false;
  for (const PolicyRule& rule : policy.rules) {
    if (rule.model != model || rule.phase == Phase::kE2eKv) continue;
    is_covered = true;
    arms.insert({rule.arm, rule.fallback});
  }
  if (!is_covered) {
    return bad_input("policy: expected rules about prefill or kv_decode of {}, found none",
                     quoted_excerpt(model));
  }
  arms.erase("");
  auto state = std::make_shared<State>();
  for (const std::string& arm : arms) {
    ASSAY_CHECK(check_arm(policy, arm, dtype));
    state->compiled[arm] = policy.stated(fmt::format("arms.{}.compile_mode", arm)) == "compiled";
  }
  state->rules.resize(policy.rules.size());
  state->stood_in.resize(policy.rules.size());
  state->policy = std::move(policy);
  state->model = model;
  state->tell = std::move(tell);
  return PolicyRoutes(std::move(state));
}

std::vector<std::string> PolicyRoutes::arms() const {
  std::vector<std::string> names;
  for (const auto& [arm, compiled] : state_->compiled) names.push_back(arm);
  return names;
}

std::optional<RouteChoice> PolicyRoutes::choose(Phase phase, int64_t batch, int64_t prompt_tokens,
                                                int64_t new_tokens) const {
  const Policy& policy = state_->policy;
  const PolicyRule* const rule =
      rule_of(policy, {state_->model, phase, batch, new_tokens, prompt_tokens});
  RouteChoice choice;
  std::string arm = policy.fallback;
  if (rule != nullptr) {
    choice.rule = static_cast<size_t>(rule - policy.rules.data());
    const std::lock_guard lock(state_->mutex);
    arm = state_->arm_of(*choice.rule);
  }
  if (arm.empty()) return std::nullopt;
  choice.compiled = state_->compiled.at(arm);
  return choice;
}

void PolicyRoutes::ended(const RouteChoice& choice, const CallEvents& events, bool stood_in) {
  if (!choice.rule) return;
  const PolicyRule& rule = state_->policy.rules[*choice.rule];
  RouteSwitch made{.rule = *choice.rule + 1, .from = rule.arm, .to = rule.fallback};
  {
    const std::lock_guard lock(state_->mutex);
    RuleState& of = state_->rules[*choice.rule];
    if (of.fired) {
      ++of.requests;
      ++of.diverted;
      return;
    }
    if (stood_in && !events.lost) {
      ++state_->stood_in[*choice.rule];
      return;
    }
    watch_triggers(rule.triggers, stood_in ? CallEvents{.lost = true} : events, of);
    if (!of.fired) return;
    made.trigger = *of.fired;
    made.requests = of.requests;
  }
  made.shape = shape_text(rule);
  state_->tell(made);
}

std::string PolicyRoutes::metrics() const {
  std::string requests =
      "# HELP assay_route_requests_total Phases of requests that a rule of the policy covered.\n"
      "# TYPE assay_route_requests_total counter\n";
  std::string switches =
      "# HELP assay_route_switched Whether a rule gave way to its fallback, by the trigger that "
      "fired.\n"
      "# TYPE assay_route_switched gauge\n";
  const std::lock_guard lock(state_->mutex);
  for (size_t rule = 0; rule < state_->rules.size(); ++rule) {
    const PolicyRule& of = state_->policy.rules[rule];
    if (of.model != state_->model || of.phase == Phase::kE2eKv) continue;
    const RuleState& counted = state_->rules[rule];
    requests +=
        fmt::format("assay_route_requests_total{{rule=\"{}\",phase=\"{}\",served=\"rule\"}} {}\n",
                    rule + 1, phase_name(of.phase), counted.requests - counted.diverted);
    requests += fmt::format(
        "assay_route_requests_total{{rule=\"{}\",phase=\"{}\",served=\"fallback\"}} {}\n", rule + 1,
        phase_name(of.phase), counted.diverted);
    requests += fmt::format(
        "assay_route_requests_total{{rule=\"{}\",phase=\"{}\",served=\"restart\"}} {}\n", rule + 1,
        phase_name(of.phase), state_->stood_in[rule]);
    for (const PolicyTrigger& trigger : of.triggers) {
      switches += fmt::format("assay_route_switched{{rule=\"{}\",trigger=\"{}\"}} {}\n", rule + 1,
                              trigger_name(trigger.kind), counted.fired == trigger.kind ? 1 : 0);
    }
  }
  return requests + switches;
}

}  // namespace assay::server
