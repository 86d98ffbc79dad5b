// A given policy beside the one that the rows would give.
#include "routing/given_policy.h"

#include <algorithm>

#include "analysis/compare/compare.h"
#include "analysis/findings/spread_text.h"
#include "base/add_once.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "routing/derive.h"
#include "routing/rule_basis.h"

namespace assay {
namespace {

// The reason why the arm can't be fallen back to on the stratum; empty: it can.
std::string why_not_safe(const Samples& samples, size_t stratum, const std::string& arm,
                         const AnalysisOptions& options) {
  const Group* group = samples.find(stratum, arm);
  if (group == nullptr) return "it wasn't measured there";
  if (group->execution() == Execution::kCompiled) return "it ran compiled";
  return reason_barred(*group, options);
}

Status check_names(const Policy& policy, const Samples& samples) {
  const std::vector<std::string> models = models_of(samples);
  std::vector<std::string> arms = {policy.fallback};
  for (const PolicyRule& rule : policy.rules) {
    arms.push_back(rule.arm);
    arms.push_back(rule.fallback);
    if (std::ranges::find(models, rule.model) != models.end()) continue;
    return bad_input("policy: expected one of the models {}, found {}{}", join(models, ", "),
                     quoted_excerpt(rule.model), nearest_hint(rule.model, models));
  }
  for (const std::string& arm : arms) {
    if (arm.empty() || std::ranges::find(samples.arms, arm) != samples.arms.end()) continue;
    return bad_input("policy: expected one of the arms {}, found {}{}", join(samples.arms, ", "),
                     quoted_excerpt(arm), nearest_hint(arm, samples.arms));
  }
  return {};
}

Status check_fallback(const Samples& samples, size_t stratum, const std::string& arm,
                      const AnalysisOptions& options) {
  if (arm.empty()) return {};
  const std::string why = why_not_safe(samples, stratum, arm, options);
  if (why.empty()) return {};
  return bad_input("policy: expected a fallback that is safe, found {} for {} ({})",
                   quoted_excerpt(arm), stratum_text(samples.strata[stratum]), why);
}

Status check_rule(const PolicyRule& rule, const Policy& policy, const Samples& samples,
                  const AnalysisOptions& options) {
  for (const size_t stratum : basis_of_rule(rule, policy, samples).strata) {
    if (rule.arm.empty()) continue;
    const Group* group = samples.find(stratum, rule.arm);
    const std::string why =
        group == nullptr ? "it wasn't measured there" : reason_barred(*group, options);
    if (!why.empty()) {
      return bad_input("policy: expected arms that may be chosen, found {} for {} ({})",
                       quoted_excerpt(rule.arm), stratum_text(samples.strata[stratum]), why);
    }
    if (rule.fallback.empty() && group->execution() == Execution::kCompiled) {
      return bad_input("policy: expected a fallback beside {} for {}, found none",
                       quoted_excerpt(rule.arm), stratum_text(samples.strata[stratum]));
    }
    ASSAY_CHECK(check_fallback(samples, stratum, rule.fallback, options));
  }
  return {};
}

// "kv_decode of gpt2-25m, 10-80 prompt tokens, 64 new tokens, batch 1"
std::string covered_text(const PolicyRule& rule) {
  const std::string new_tokens = new_tokens_text(rule);
  return fmt::format("{} of {}, {}-{} prompt tokens{}, batch {}", phase_name(rule.phase),
                     rule.model, rule.shortest, rule.longest,
                     new_tokens.empty() ? "" : fmt::format(", {} new tokens", new_tokens),
                     rule.batch);
}

std::string ratio_to_safe(const ProvenArm& arm) {
  return format_significant(arm.ratio, 3) + spread_text(arm.interval, arm.process_range, 3);
}

// The first stratum on which the rows choose another arm than the rule, in a sentence.
std::string difference_of(const PolicyRule& rule, const StratumChoice& choice,
                          const Samples& samples) {
  const std::string& prompt = prompt_name(samples.strata[choice.stratum]);
  const std::string rows =
      choice.arm.empty()
          ? "no arm"
          : choice.arm + (choice.ratio
                              ? fmt::format(" ({} of {}'s time)",
                                            format_significant(*choice.ratio, 3), choice.safe)
                              : "");
  const std::string takes = rule.arm.empty() ? "no arm" : rule.arm;
  const std::string because =
      choice.abstains ? fmt::format(", because: {}", choice.because) : std::string();
  return fmt::format("{}: the policy takes {}, and the rows of {} take {}{}", covered_text(rule),
                     takes, prompt, rows, because);
}

// "1-9 and 401-1000000 prompt tokens": the part of the rule outside of everything measured.
std::string beyond_text(const PolicyRule& rule, const std::vector<RuleEvidence>& beyond) {
  std::vector<std::string> lengths;
  std::vector<std::string> new_tokens;
  for (const RuleEvidence& part : beyond) {
    const bool whole = part.shortest == rule.shortest && part.longest == rule.longest;
    if (whole && decodes(rule.phase)) {
      add_once(new_tokens, fmt::format("{}", part.new_tokens));
    } else {
      add_once(lengths, part.shortest == part.longest
                            ? fmt::format("{}", part.shortest)
                            : fmt::format("{}-{}", part.shortest, part.longest));
    }
  }
  std::vector<std::string> parts;
  if (!lengths.empty()) parts.push_back(listed(lengths) + " prompt tokens");
  if (!new_tokens.empty()) parts.push_back(listed(new_tokens) + " new tokens");
  return listed(parts);
}

void hold_rule(const Samples& samples, PolicyRule& rule, Route& route) {
  const RuleBasis basis = basis_of_rule(rule, route.policy, samples);
  std::vector<const StratumChoice*> choices;
  for (const size_t stratum : basis.strata) choices.push_back(&route.choices[stratum]);
  if (!basis.beyond.empty()) {
    route.differs.push_back(
        fmt::format("{}: the policy takes {} at {}, which nobody measured: the rows leave these "
                    "to the safe arm",
                    covered_text(rule), rule.arm, beyond_text(rule, basis.beyond)));
  } else if (choices.empty()) {
    route.differs.push_back(covered_text(rule) + ": the rows say nothing of these lengths");
  }
  bool told = false;
  for (const StratumChoice* choice : choices) {
    const auto slower = std::ranges::find(choice->slower, rule.arm, &ProvenArm::arm);
    if (slower != choice->slower.end()) {
      route.refuted.push_back(fmt::format(
          "{}: the policy takes {}, and the rows of {} prove it slower than {}: {} of its time",
          covered_text(rule), rule.arm, prompt_name(samples.strata[choice->stratum]), choice->safe,
          ratio_to_safe(*slower)));
      continue;
    }
    const bool abstains = rule.abstains && rule.arm == choice->safe;
    const bool agrees =
        choice->arm == rule.arm || abstains || proof_of(*choice, rule.arm) != nullptr;
    if (!agrees && !told) route.differs.push_back(difference_of(rule, *choice, samples));
    told = told || !agrees;
  }
  rule.evidence = evidence_of(samples, choices, rule);
  rule.evidence.insert(rule.evidence.end(), basis.beyond.begin(), basis.beyond.end());
}

}  // namespace

Status check_given_policy(const Policy& policy, const Samples& samples, const Route& route) {
  ASSAY_CHECK(check_names(policy, samples));
  for (const PolicyRule& rule : policy.rules) {
    ASSAY_CHECK(check_rule(rule, policy, samples, route.options));
  }
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    ASSAY_CHECK(check_fallback(samples, i, policy.fallback, route.options));
  }
  return {};
}

void hold_against_rows(const Samples& samples,
                       const std::vector<std::pair<std::string, std::string>>& identity,
                       Route& route) {
  for (PolicyRule& rule : route.policy.rules) hold_rule(samples, rule, route);
  std::vector<std::string> free;
  for (const auto& [axis, value] : identity) {
    const auto& named = route.policy.identity;
    const bool held =
        std::ranges::any_of(named, [&](const auto& one) { return one.first == axis; });
    if (!held) free.push_back(axis);
  }
  if (free.empty()) return;
  constexpr size_t kMostAxes = 4;
  std::vector<std::string> first(free.begin(),
                                 free.begin() + std::min<ptrdiff_t>(std::ssize(free), kMostAxes));
  route.differs.push_back(
      fmt::format("the policy doesn't name {} of the identity ({}{}), so it isn't held to {}",
                  counted(std::ssize(free), "axis", "axes"), join(first, ", "),
                  free.size() > kMostAxes ? ", ..." : "", free.size() == 1 ? "it" : "them"));
}

}  // namespace assay
