// policy.yaml to a policy, whoever wrote it.
#include <tuple>

#include "analysis/findings/decision.h"
#include "analysis/findings/record_entries.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "routing/policy.h"
#include "study/yaml_reader.h"

namespace assay {
namespace {

using PolicyKeys = std::vector<std::string>;

constexpr int64_t kMostTokens = 1'000'000'000;
constexpr double kMostFigure = 1e15;

// A text, or nothing where the value is null or isn't there.
Result<std::string> text_or_none(const std::optional<YamlValue>& value) {
  if (!value) return std::string();
  return value->any_text();
}

Result<int64_t> count_or(const YamlMap& map, const char* key, int64_t fallback, int64_t least) {
  const auto value = map.find(key);
  if (!value) return fallback;
  return value->integer(least, kMostTokens);
}

// [FROM, TO] of prompt tokens.
Result<std::pair<int64_t, int64_t>> token_range(const YamlValue& value) {
  ASSAY_TRY(const std::vector<YamlValue> ends, value.items());
  if (ends.size() != 2)
    return value.error("two numbers of tokens", counted(std::ssize(ends), "value"));
  ASSAY_TRY(const int64_t from, ends[0].integer(0, kMostTokens));
  ASSAY_TRY(const int64_t to, ends[1].integer(from, kMostTokens));
  return std::pair(from, to);
}

Result<Phase> phase_of(const YamlValue& value) {
  static const PolicyKeys kNames = [] {
    PolicyKeys names;
    for (const Phase phase : kRequestPhases) names.emplace_back(phase_name(phase));
    return names;
  }();
  ASSAY_TRY(const size_t index, value.one_of(kNames));
  return kRequestPhases[index];
}

Result<PolicyTrigger> read_trigger(const YamlValue& value) {
  static const PolicyKeys kKeys = {"on", "allowed", "window", "limit_ms", "source"};
  static const PolicyKeys kNames = [] {
    PolicyKeys names;
    for (const TriggerKind kind : kTriggerKinds) names.emplace_back(trigger_name(kind));
    return names;
  }();
  ASSAY_TRY(const YamlMap map, value.map(kKeys));
  PolicyTrigger trigger;
  ASSAY_TRY(const YamlValue on, map.require("on"));
  ASSAY_TRY(const size_t kind, on.one_of(kNames));
  trigger.kind = kTriggerKinds[kind];
  ASSAY_TRY(const YamlValue allowed, map.require("allowed"));
  ASSAY_TRY(trigger.allowed, allowed.integer(0, kMostTokens));
  ASSAY_TRY(trigger.window, count_or(map, "window", 0, 1));
  const auto limit = map.find("limit_ms");
  if (limit.has_value() != (trigger.kind == TriggerKind::kSlowRequest)) {
    return on.error("limit_ms beside p99_ms, and beside nothing else",
                    limit ? "one beside another trigger" : "none");
  }
  if (limit) {
    ASSAY_TRY(trigger.limit_ms, limit->positive_number(kMostFigure));
  }
  ASSAY_TRY(trigger.source, text_or_none(map.find("source")));
  return trigger;
}

// [LOW, HIGH] of ratios.
Result<stats::Interval> read_ends(const YamlValue& value) {
  ASSAY_TRY(const std::vector<YamlValue> ends, value.items());
  if (ends.size() != 2) return value.error("two ends", counted(std::ssize(ends), "value"));
  ASSAY_TRY(const double low, ends[0].positive_number(kMostFigure));
  ASSAY_TRY(const double high, ends[1].positive_number(kMostFigure));
  if (low > high) return value.error("its lower end first", "the upper one");
  return stats::Interval{low, high};
}

// `new_tokens`: of its rule, which version 1 has there alone.
Result<RuleEvidence> read_evidence(const YamlValue& value, int64_t new_tokens) {
  static const PolicyKeys kKeys = {
      "scenario",         "prompt_tokens",   "verdict",    "rows",    "ratio",
      "interval",         "process_range",   "new_tokens", "mean_ms", "p99_ms",
      "fallback_mean_ms", "fallback_p99_ms", "compile_ms"};
  ASSAY_TRY(const YamlMap map, value.map(kKeys));
  RuleEvidence evidence;
  ASSAY_TRY(evidence.scenario, text_or_none(map.find("scenario")));
  ASSAY_TRY(const YamlValue tokens, map.require("prompt_tokens"));
  ASSAY_TRY(const auto range, token_range(tokens));
  std::tie(evidence.shortest, evidence.longest) = range;
  ASSAY_TRY(const YamlValue verdict, map.require("verdict"));
  static const PolicyKeys kVerdicts = [] {
    PolicyKeys names;
    for (const Decision::Kind kind : EnumWords<Decision::Kind>::kAll) {
      names.emplace_back(decision_name(kind));
    }
    names.emplace_back(kFasterThanSafe);
    names.emplace_back(kNotChosen);
    names.emplace_back(kNotMeasured);
    return names;
  }();
  ASSAY_TRY(const size_t word, verdict.one_of(kVerdicts));
  evidence.verdict = kVerdicts[word];
  ASSAY_TRY(evidence.rows, count_or(map, "rows", 0, 0));
  ASSAY_TRY(evidence.new_tokens, count_or(map, "new_tokens", new_tokens, 0));
  if (const auto ratio = map.find("ratio")) {
    ASSAY_TRY(evidence.ratio, ratio->positive_number(kMostFigure));
  }
  for (const auto& [key, ms] : {std::pair{"mean_ms", &evidence.mean_ms},
                                {"p99_ms", &evidence.p99_ms},
                                {"fallback_mean_ms", &evidence.fallback_mean_ms},
                                {"fallback_p99_ms", &evidence.fallback_p99_ms},
                                {"compile_ms", &evidence.compile_ms}}) {
    if (const auto said = map.find(key)) {
      ASSAY_TRY(*ms, said->positive_number(kMostFigure));
    }
  }
  for (const auto& [key, spread] : {std::pair{"interval", &evidence.interval},
                                    std::pair{"process_range", &evidence.process_range}}) {
    if (const auto ends = map.find(key)) {
      ASSAY_TRY(*spread, read_ends(*ends));
    }
  }
  return evidence;
}

Status read_lists(const YamlMap& map, PolicyRule& rule) {
  if (const auto triggers = map.find("triggers")) {
    ASSAY_TRY(const std::vector<YamlValue> items, triggers->items());
    for (const YamlValue& item : items) {
      ASSAY_TRY(PolicyTrigger trigger, read_trigger(item));
      rule.triggers.push_back(std::move(trigger));
    }
  }
  if (const auto evidence = map.find("evidence")) {
    ASSAY_TRY(const std::vector<YamlValue> items, evidence->items());
    for (const YamlValue& item : items) {
      ASSAY_TRY(RuleEvidence one, read_evidence(item, rule.new_tokens));
      rule.evidence.push_back(std::move(one));
    }
  }
  return {};
}

Result<PolicyRule> read_rule(const YamlValue& value) {
  static const PolicyKeys kKeys = {"model",         "phase",    "batch",    "new_tokens",
                                   "prompt_tokens", "arm",      "fallback", "abstains",
                                   "because",       "triggers", "evidence"};
  ASSAY_TRY(const YamlMap map, value.map(kKeys));
  PolicyRule rule;
  ASSAY_TRY(const YamlValue model, map.require("model"));
  ASSAY_TRY(rule.model, model.any_text());
  ASSAY_TRY(const YamlValue phase, map.require("phase"));
  ASSAY_TRY(rule.phase, phase_of(phase));
  ASSAY_TRY(rule.batch, count_or(map, "batch", 1, 1));
  if (const auto new_tokens = map.find("new_tokens")) {
    if (new_tokens->is_list()) {
      ASSAY_TRY(const auto from_to, token_range(*new_tokens));
      rule.new_tokens = from_to.first;
      rule.new_tokens_span = from_to.second - from_to.first;
    } else {
      ASSAY_TRY(rule.new_tokens, new_tokens->integer(0, kMostTokens));
    }
  }
  ASSAY_TRY(const YamlValue tokens, map.require("prompt_tokens"));
  ASSAY_TRY(const auto range, token_range(tokens));
  std::tie(rule.shortest, rule.longest) = range;
  ASSAY_TRY(const YamlValue arm, map.require("arm"));
  ASSAY_TRY(rule.arm, text_or_none(arm));
  ASSAY_TRY(rule.fallback, text_or_none(map.find("fallback")));
  const auto abstains = map.find("abstains");
  rule.abstains = abstains.has_value();
  const auto because = map.find("because");
  if (abstains && because) {
    return because->error("a reason or an abstention, which has its own", "both");
  }
  ASSAY_TRY(rule.because, text_or_none(abstains ? abstains : because));
  ASSAY_CHECK(read_lists(map, rule));
  if (!rule.triggers.empty() && rule.fallback.empty()) {
    return value.error("a fallback beside triggers", "none");
  }
  return rule;
}

bool covers_the_same(const PolicyRule& a, const PolicyRule& b) {
  return a.model == b.model && a.phase == b.phase && a.batch == b.batch &&
         a.new_tokens <= b.most_new_tokens() && b.new_tokens <= a.most_new_tokens() &&
         a.shortest <= b.longest && b.shortest <= a.longest;
}

Status read_rules(const YamlValue& value, Policy& policy) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  for (const YamlValue& item : items) {
    ASSAY_TRY(PolicyRule rule, read_rule(item));
    for (const PolicyRule& other : policy.rules) {
      if (!covers_the_same(rule, other)) continue;
      return item.error("rules that cover each request once",
                        fmt::format("another one of {} prompt tokens {} to {}",
                                    phase_name(other.phase), other.shortest, other.longest));
    }
    policy.rules.push_back(std::move(rule));
  }
  return {};
}

Status read_identity(const YamlValue& value, Policy& policy) {
  static const PolicyKeys kKeys = {"axis", "value"};
  if (!value.is_list()) return value.error("a list of axes");
  auto items = value.items();
  if (!items) return {};  // an empty one: nothing is recorded of who was measured
  for (const YamlValue& item : *items) {
    ASSAY_TRY(const YamlMap map, item.map(kKeys));
    ASSAY_TRY(const YamlValue axis, map.require("axis"));
    ASSAY_TRY(const YamlValue is, map.require("value"));
    ASSAY_TRY(std::string name, axis.any_text());
    ASSAY_TRY(std::string text, is.any_text());
    policy.identity.emplace_back(std::move(name), std::move(text));
  }
  return {};
}

}  // namespace

Result<Policy> parse_policy(std::string_view text, std::string_view object) {
  static const PolicyKeys kKeys = {"policy",   "study",    "measured_at", "plan_sha256",
                                   "identity", "fallback", "rules",       "not_measured"};
  ASSAY_TRY(const YamlNode tree, parse_yaml(text, object));
  const YamlValue whole(tree, object, "");
  ASSAY_TRY(const YamlMap map, whole.map(kKeys));
  ASSAY_TRY(const YamlValue version, map.require("policy"));
  ASSAY_CHECK(version.integer(kOldestPolicyVersion, kPolicyVersion));
  Policy policy;
  ASSAY_TRY(policy.study, text_or_none(map.find("study")));
  ASSAY_TRY(policy.measured_at, text_or_none(map.find("measured_at")));
  ASSAY_TRY(policy.plan_sha256, text_or_none(map.find("plan_sha256")));
  ASSAY_TRY(const YamlValue identity, map.require("identity"));
  ASSAY_CHECK(read_identity(identity, policy));
  ASSAY_TRY(policy.fallback, text_or_none(map.find("fallback")));
  ASSAY_TRY(const YamlValue rules, map.require("rules"));
  ASSAY_CHECK(read_rules(rules, policy));
  if (const auto gaps = map.find("not_measured")) {
    ASSAY_TRY(const std::vector<YamlValue> items, gaps->items());
    for (const YamlValue& item : items) {
      ASSAY_TRY(std::string one, item.any_text());
      policy.not_measured.push_back(std::move(one));
    }
  }
  return policy;
}

Result<Policy> read_policy(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path, kMaxYamlBytes));
  return parse_policy(text, path.string());
}

}  // namespace assay
