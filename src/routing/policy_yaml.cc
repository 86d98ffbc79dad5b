// A policy as YAML: texts in JSON's quotes, which YAML reads, and one line a trigger and a stratum.
#include "base/records/json.h"
#include "base/text/text.h"
#include "routing/policy.h"
#include "study/yaml_tree.h"

namespace assay {
namespace {

constexpr std::string_view kAboutPolicy =
    " A request takes the rule that covers its model,\n"
    "# phase, batch, new tokens and prompt tokens, else `fallback`. As soon as more than "
    "`allowed`\n"
    "# of a rule's `window` requests did what a trigger names, its later requests go to the "
    "rule's\n"
    "# own fallback; counting starts anew after each `window`. The policy holds only where the\n"
    "# identity below holds.\n";

std::string yaml_text(const std::string& text) {
  return to_json_line(Json(text));
}

// The arm, or null where there is none.
std::string yaml_arm(const std::string& arm) {
  return arm.empty() ? "null" : yaml_text(arm);
}

std::string yaml_range(int64_t from, int64_t to) {
  return fmt::format("[{}, {}]", from, to);
}

std::string trigger_line(const PolicyTrigger& trigger) {
  std::string line =
      fmt::format("      - {{on: {}, allowed: {}", trigger_name(trigger.kind), trigger.allowed);
  if (trigger.window > 0) line += fmt::format(", window: {}", trigger.window);
  if (trigger.limit_ms) line += fmt::format(", limit_ms: {}", *trigger.limit_ms);
  return line + fmt::format(", source: {}}}\n", yaml_text(trigger.source));
}

std::string evidence_line(const RuleEvidence& evidence) {
  std::string line =
      fmt::format("      - {{scenario: {}, prompt_tokens: {}, verdict: {}, rows: {}",
                  yaml_text(evidence.scenario), yaml_range(evidence.shortest, evidence.longest),
                  evidence.verdict, evidence.rows);
  if (evidence.new_tokens > 0) line += fmt::format(", new_tokens: {}", evidence.new_tokens);
  if (evidence.ratio) line += fmt::format(", ratio: {}", *evidence.ratio);
  for (const auto& [key, range] : {std::pair{"interval", &evidence.interval},
                                   std::pair{"process_range", &evidence.process_range}}) {
    if (*range) line += fmt::format(", {}: [{}, {}]", key, (*range)->low, (*range)->high);
  }
  const auto add = [&](std::string_view key, const std::optional<double>& ms) {
    if (ms) line += fmt::format(", {}: {}", key, *ms);
  };
  add("mean_ms", evidence.mean_ms);
  add("p99_ms", evidence.p99_ms);
  add("fallback_mean_ms", evidence.fallback_mean_ms);
  add("fallback_p99_ms", evidence.fallback_p99_ms);
  add("compile_ms", evidence.compile_ms);
  return line + "}\n";
}

std::string rule_text(const PolicyRule& rule) {
  std::string out = fmt::format("  - model: {}\n    phase: {}\n    batch: {}\n",
                                yaml_text(rule.model), phase_name(rule.phase), rule.batch);
  if (rule.new_tokens_span > 0) {
    out += fmt::format("    new_tokens: {}\n", yaml_range(rule.new_tokens, rule.most_new_tokens()));
  } else if (rule.new_tokens > 0) {
    out += fmt::format("    new_tokens: {}\n", rule.new_tokens);
  }
  out += fmt::format("    prompt_tokens: {}\n    arm: {}\n    fallback: {}\n",
                     yaml_range(rule.shortest, rule.longest), yaml_arm(rule.arm),
                     yaml_arm(rule.fallback));
  if (rule.abstains || !rule.because.empty()) {
    out += fmt::format("    {}: {}\n", rule.abstains ? "abstains" : "because",
                       yaml_text(rule.because));
  }
  if (!rule.triggers.empty()) out += "    triggers:\n";
  for (const PolicyTrigger& trigger : rule.triggers) out += trigger_line(trigger);
  if (!rule.evidence.empty()) out += "    evidence:\n";
  for (const RuleEvidence& evidence : rule.evidence) out += evidence_line(evidence);
  return out;
}

}  // namespace

std::string policy_to_yaml(const Policy& policy) {
  std::string out = fmt::format("{}{}", kPolicyHeading, kAboutPolicy);
  out += fmt::format("policy: {}\nstudy: {}\n", kPolicyVersion, yaml_text(policy.study));
  if (!policy.measured_at.empty()) {
    out += fmt::format("measured_at: {}\n", yaml_text(policy.measured_at));
  }
  if (!policy.plan_sha256.empty()) {
    out += fmt::format("plan_sha256: {}\n", yaml_text(policy.plan_sha256));
  }
  out += policy.identity.empty() ? "identity: []\n" : "identity:\n";
  for (const auto& [axis, value] : policy.identity) {
    out += fmt::format("  - {{axis: {}, value: {}}}\n", yaml_text(axis), yaml_text(value));
  }
  out += fmt::format("fallback: {}\nrules:\n", yaml_arm(policy.fallback));
  for (const PolicyRule& rule : policy.rules) out += rule_text(rule);
  if (!policy.not_measured.empty()) out += "not_measured:\n";
  for (const std::string& text : policy.not_measured) {
    out += fmt::format("  - {}\n", yaml_text(text));
  }
  return out;
}

Result<std::string> checked_policy_text(const Policy& policy) {
  std::string text = policy_to_yaml(policy);
  if (const auto again = parse_policy(text, "policy"); !again) {
    return with_context("a policy that can't be read back isn't written", again.error());
  }
  return text;
}

}  // namespace assay
