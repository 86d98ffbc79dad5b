// Points to ranges.
#include "routing/derive.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/add_once.h"
#include "base/text/text.h"
#include "routing/triggers.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Key of a rule: its requests share everything but their prompt lengths.
using RuleKey = std::tuple<Phase, std::string, int64_t, int64_t>;  // model, new tokens, batch

RuleKey key_of(const Stratum& stratum) {
  return {stratum.phase, stratum.model, stratum.new_tokens, stratum.batch};
}

// Measured lengths that overlap, and the arm that their strata choose together.
struct MeasuredSpan {
  int64_t shortest = 0;
  int64_t longest = 0;
  std::vector<const StratumChoice*> choices;
  std::string arm;
  std::string safe;
  bool abstains = false;
  std::string because;
};

void settle_span(const Samples& samples, MeasuredSpan& span) {
  const StratumChoice& first = *span.choices.front();
  span.arm = first.arm;
  span.safe = first.safe;
  for (const StratumChoice* choice : span.choices) {
    if (choice->abstains && !span.abstains) span.because = choice->because;
    span.abstains = span.abstains || choice->abstains;
    if (choice->safe != span.safe) span.safe.clear();
  }
  const auto other = std::ranges::find_if(
      span.choices, [&](const StratumChoice* choice) { return choice->arm != first.arm; });
  if (other == span.choices.end()) {
    if (span.safe.empty() && !span.arm.empty()) {
      span.arm.clear();
      span.abstains = true;
      span.because = "no arm is safe on all strata of these lengths";
    }
    return;
  }
  const ProvenArm* proven = proven_on_all(span.choices);
  span.arm = proven == nullptr ? span.safe : proven->arm;
  span.abstains = proven == nullptr;
  const auto said = [&](const StratumChoice& choice) {
    return fmt::format("{} for {}", choice.arm.empty() ? "no arm" : choice.arm,
                       prompt_name(samples.strata[choice.stratum]));
  };
  span.because =
      fmt::format("strata of the same lengths choose {} and {}{}", said(first), said(**other),
                  proven == nullptr ? ""
                                    : fmt::format("; {} is proven faster than {} on "
                                                  "each of them",
                                                  span.arm, span.safe));
}

// Choices of one key, in the order of their lengths.
std::vector<MeasuredSpan> spans_of(const Samples& samples,
                                   std::vector<const StratumChoice*> choices) {
  std::ranges::stable_sort(choices, {}, [&](const StratumChoice* choice) {
    return samples.prompts[choice->stratum].shortest;
  });
  std::vector<MeasuredSpan> spans;
  for (const StratumChoice* choice : choices) {
    const PromptRange& prompts = samples.prompts[choice->stratum];
    if (spans.empty() || prompts.shortest > spans.back().longest) {
      spans.push_back({.shortest = prompts.shortest,
                       .longest = prompts.longest,
                       .choices = {},
                       .arm = {},
                       .safe = {},
                       .because = {}});
    }
    spans.back().longest = std::max(spans.back().longest, prompts.longest);
    spans.back().choices.push_back(choice);
  }
  for (MeasuredSpan& span : spans) settle_span(samples, span);
  return spans;
}

// Either may be null.
void add_times(const Group* arm, const Group* fallback, RuleEvidence& evidence) {
  if (arm != nullptr && !arm->warm.empty()) {
    evidence.rows = std::ssize(arm->warm);
    evidence.mean_ms = stats::mean(arm->warm_ms);
    evidence.p99_ms = measured_p99(*arm);
    for (const Row* row : arm->timed) {
      if (!carries_compilation(*row)) continue;
      evidence.compile_ms = std::max(evidence.compile_ms.value_or(0), *row->latency_ms);
    }
  }
  if (fallback != nullptr && !fallback->warm.empty()) {
    evidence.fallback_mean_ms = stats::mean(fallback->warm_ms);
    evidence.fallback_p99_ms = measured_p99(*fallback);
  }
}

void add_evidence(const Samples& samples, const MeasuredSpan& span, PolicyRule& rule) {
  for (RuleEvidence& evidence : evidence_of(samples, span.choices, rule)) {
    rule.evidence.push_back(std::move(evidence));
  }
}

PolicyRule rule_of_span(const Samples& samples, const MeasuredSpan& span) {
  const Stratum& stratum = samples.strata[span.choices.front()->stratum];
  PolicyRule rule;
  rule.model = stratum.model;
  rule.phase = stratum.phase;
  rule.batch = stratum.batch;
  rule.new_tokens = stratum.new_tokens;
  rule.shortest = span.shortest;
  rule.longest = span.longest;
  rule.arm = span.arm;
  rule.fallback = span.arm == span.safe ? "" : span.safe;
  rule.abstains = span.abstains;
  rule.because = span.because;
  add_evidence(samples, span, rule);
  return rule;
}

// Adds the rule between two measured lengths that don't choose alike.
void add_boundary(const Samples& samples, const MeasuredSpan& a, const MeasuredSpan& b,
                  const PolicyRule& like, std::vector<PolicyRule>& rules) {
  if (a.longest + 1 == b.shortest || a.safe.empty() || a.safe != b.safe) return;
  PolicyRule rule = like;
  rule.shortest = a.longest + 1;
  rule.longest = b.shortest - 1;
  rule.because =
      fmt::format("{} prompt tokens take {} and {} take {}; where that changes wasn't measured",
                  a.longest, a.arm, b.shortest, b.arm);
  rule.evidence.clear();
  std::vector<const StratumChoice*> both = a.choices;
  both.insert(both.end(), b.choices.begin(), b.choices.end());
  const ProvenArm* proven = proven_on_all(both);
  rule.abstains = proven == nullptr;
  rule.arm = proven == nullptr ? a.safe : proven->arm;
  rule.fallback = proven == nullptr ? "" : a.safe;
  if (proven != nullptr) {
    rule.because += fmt::format(". Both ends show that {} is faster than {}", rule.arm, a.safe);
    add_evidence(samples, a, rule);
    add_evidence(samples, b, rule);
  }
  rules.push_back(std::move(rule));
}

void add_rules(const Samples& samples, const std::vector<MeasuredSpan>& spans,
               std::vector<PolicyRule>& rules) {
  const size_t first = rules.size();
  for (size_t i = 0; i < spans.size(); ++i) {
    const MeasuredSpan& span = spans[i];
    const MeasuredSpan* before = i > 0 ? &spans[i - 1] : nullptr;
    const bool alike = before != nullptr && before->arm == span.arm && before->safe == span.safe &&
                       !span.safe.empty();
    if (alike && before->abstains == span.abstains) {
      PolicyRule& rule = rules.back();
      rule.longest = span.longest;
      if (!rule.because.contains(span.because)) {
        rule.because += (rule.because.empty() ? "" : "; ") + span.because;
      }
      add_evidence(samples, span, rule);
      continue;
    }
    PolicyRule rule = rule_of_span(samples, span);
    if (alike) {  // the gap is the abstention's
      (span.abstains ? rule.shortest : rules.back().longest) =
          span.abstains ? before->longest + 1 : span.shortest - 1;
    } else if (before != nullptr) {
      add_boundary(samples, *before, span, rule, rules);
    }
    rules.push_back(std::move(rule));
  }
  for (size_t i = first; i < rules.size(); ++i) {
    PolicyRule& rule = rules[i];
    if (!rule.fallback.empty()) rule.triggers = triggers_of(groups_of_rule(samples, rule));
  }
}

// Adds rules between two measured numbers of new tokens: where both take one arm and have one safe
// arm, for the lengths that they share. Elsewhere the policy's own fallback serves.
void add_between_new_tokens(const Samples& samples, const std::vector<PolicyRule>& fewer,
                            const std::vector<PolicyRule>& more, std::vector<PolicyRule>& rules) {
  for (const PolicyRule& a : fewer) {
    for (const PolicyRule& b : more) {
      const bool alike = a.arm == b.arm && a.fallback == b.fallback && !a.abstains && !b.abstains;
      const bool overlap = a.shortest <= b.longest && b.shortest <= a.longest;
      if (!alike || !overlap || a.arm.empty() || a.new_tokens + 1 == b.new_tokens) continue;
      PolicyRule rule = a;
      rule.new_tokens = a.new_tokens + 1;
      rule.new_tokens_span = b.new_tokens - 1 - rule.new_tokens;
      rule.shortest = std::max(a.shortest, b.shortest);
      rule.longest = std::min(a.longest, b.longest);
      if (!rule.because.contains(b.because)) {
        rule.because += (rule.because.empty() ? "" : "; ") + b.because;
      }
      rule.evidence.insert(rule.evidence.end(), b.evidence.begin(), b.evidence.end());
      rule.triggers.clear();
      if (!rule.fallback.empty()) rule.triggers = triggers_of(groups_of_rule(samples, rule));
      rules.push_back(std::move(rule));
    }
  }
}

// Choices of the strata that share a rule's key, of any prompt length.
std::map<RuleKey, std::vector<const StratumChoice*>> choices_by_key(
    const Samples& samples, std::span<const StratumChoice> choices) {
  std::map<RuleKey, std::vector<const StratumChoice*>> by_key;
  for (const StratumChoice& choice : choices) {
    by_key[key_of(samples.strata[choice.stratum])].push_back(&choice);
  }
  return by_key;
}

}  // namespace

std::vector<std::string> served_arms(const Samples& samples,
                                     std::span<const StratumChoice> choices) {
  std::vector<std::string> arms(choices.size());
  for (auto& [key, of_key] : choices_by_key(samples, choices)) {
    for (const MeasuredSpan& span : spans_of(samples, of_key)) {
      for (const StratumChoice* choice : span.choices) {
        arms[static_cast<size_t>(choice - choices.data())] = span.arm;
      }
    }
  }
  return arms;
}

std::vector<RuleEvidence> evidence_of(const Samples& samples,
                                      std::span<const StratumChoice* const> choices,
                                      const PolicyRule& rule) {
  std::vector<RuleEvidence> all;
  for (const StratumChoice* choice : choices) {
    RuleEvidence& evidence = all.emplace_back();
    evidence.scenario = samples.strata[choice->stratum].scenario;
    evidence.new_tokens = samples.strata[choice->stratum].new_tokens;
    evidence.shortest = samples.prompts[choice->stratum].shortest;
    evidence.longest = samples.prompts[choice->stratum].longest;
    evidence.verdict = decision_name(choice->decision);
    if (choice->arm == rule.arm) {
      evidence.ratio = choice->ratio;
      evidence.interval = choice->interval;
      evidence.process_range = choice->process_range;
    } else if (const ProvenArm* proven = proof_of(*choice, rule.arm); proven != nullptr) {
      evidence.verdict = kFasterThanSafe;
      evidence.ratio = proven->ratio;
      evidence.interval = proven->interval;
      evidence.process_range = proven->process_range;
    } else if (!rule.abstains && !rule.arm.empty()) {
      evidence.verdict = kNotChosen;
    }
    add_times(samples.find(choice->stratum, rule.arm), samples.find(choice->stratum, rule.fallback),
              evidence);
  }
  return all;
}

bool rests_on(const PolicyRule& rule, const Stratum& stratum, const PromptRange& prompts) {
  if (stratum.phase != rule.phase || stratum.model != rule.model || stratum.batch != rule.batch) {
    return false;
  }
  return std::ranges::any_of(rule.evidence, [&](const RuleEvidence& evidence) {
    return evidence.scenario == stratum.scenario && evidence.new_tokens == stratum.new_tokens &&
           evidence.shortest == prompts.shortest && evidence.longest == prompts.longest;
  });
}

std::vector<const Group*> groups_of_rule(const Samples& samples, const PolicyRule& rule) {
  std::vector<const Group*> groups;
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    if (!rests_on(rule, samples.strata[i], samples.prompts[i])) continue;
    const Group* group = samples.find(i, rule.arm);
    if (group != nullptr) groups.push_back(group);
  }
  return groups;
}

std::vector<std::string> models_of(const Samples& samples) {
  std::vector<std::string> models;
  for (const Stratum& stratum : samples.strata) add_once(models, stratum.model);
  return models;
}

std::vector<PolicyRule> rules_of(const Samples& samples, std::span<const StratumChoice> choices) {
  std::map<RuleKey, std::vector<const StratumChoice*>> by_key = choices_by_key(samples, choices);
  std::vector<RuleKey> keys;
  for (const auto& [key, of_key] : by_key) keys.push_back(key);
  // Phase by phase and model by model as the samples have them, then by new tokens and batch.
  const std::vector<std::string> models = models_of(samples);
  std::ranges::stable_sort(keys, {}, [&](const RuleKey& key) {
    const auto& [phase, model, new_tokens, batch] = key;
    return std::tuple(phase, std::ranges::find(models, model) - models.begin(), new_tokens, batch);
  });
  std::map<RuleKey, std::vector<PolicyRule>> of_keys;
  for (const RuleKey& key : keys) add_rules(samples, spans_of(samples, by_key[key]), of_keys[key]);
  std::vector<PolicyRule> rules;
  for (const RuleKey& key : keys) {
    const std::vector<PolicyRule>& own = of_keys[key];
    rules.insert(rules.end(), own.begin(), own.end());
    const auto more = std::ranges::find_if(keys, [&](const RuleKey& other) {
      return std::get<0>(other) == std::get<0>(key) && std::get<1>(other) == std::get<1>(key) &&
             std::get<3>(other) == std::get<3>(key) && std::get<2>(other) > std::get<2>(key);
    });
    if (more != keys.end()) add_between_new_tokens(samples, own, of_keys[*more], rules);
  }
  return rules;
}

std::string common_fallback(std::span<const StratumChoice> choices) {
  if (choices.empty()) return "";
  const std::string& first = choices.front().safe;
  const bool same = std::ranges::all_of(
      choices, [&](const StratumChoice& choice) { return choice.safe == first; });
  return same ? first : "";
}

}  // namespace assay
