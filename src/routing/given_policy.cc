// A given policy beside the one that the rows would give.
#include "routing/given_policy.h"

#include <algorithm>

#include "analysis/compare/compare.h"
#include "base/text.h"
#include "routing/derive.h"

namespace assay {
namespace {

bool shares_key(const PolicyRule& rule, const Stratum& stratum) {
  return rule.model == stratum.model && rule.phase == stratum.phase && rule.batch == stratum.batch;
}

// Of the strata of which `at` gives a range, the nearest below and above [from, to].
template <typename Range>
std::vector<size_t> ends_around(const std::vector<size_t>& strata, int64_t from, int64_t to,
                                const Range& at) {
  std::optional<size_t> below;
  std::optional<size_t> above;
  for (const size_t i : strata) {
    const auto [least, most] = at(i);
    if (most < from && (!below || at(*below).second < most)) below = i;
    if (least > to && (!above || least < at(*above).first)) above = i;
  }
  std::vector<size_t> ends;
  for (const auto& end : {below, above}) {
    if (end) ends.push_back(*end);
  }
  return ends;
}

// Strata whose requests the rule serves, or that it names as its evidence; of a rule between two
// measured lengths or numbers of new tokens those at both ends. By new tokens, then length.
std::vector<size_t> strata_of_rule(const PolicyRule& rule, const Samples& samples) {
  std::vector<size_t> strata;
  std::vector<size_t> of_lengths;     // but of other numbers of new tokens
  std::vector<size_t> of_new_tokens;  // but of other lengths
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    if (!shares_key(rule, samples.strata[i])) continue;
    const PromptRange& prompts = samples.prompts[i];
    const int64_t tokens = samples.strata[i].new_tokens;
    const bool lengths = rule.shortest <= prompts.longest && prompts.shortest <= rule.longest;
    const bool new_tokens = rule.new_tokens <= tokens && tokens <= rule.most_new_tokens();
    if ((lengths && new_tokens) || rests_on(rule, samples.strata[i], prompts)) {
      strata.push_back(i);
    } else if (lengths || new_tokens) {
      (lengths ? of_lengths : of_new_tokens).push_back(i);
    }
  }
  if (strata.empty() && !rule.fallback.empty()) {
    strata = ends_around(of_new_tokens, rule.shortest, rule.longest, [&](size_t i) {
      return std::pair(samples.prompts[i].shortest, samples.prompts[i].longest);
    });
    for (const size_t end :
         ends_around(of_lengths, rule.new_tokens, rule.most_new_tokens(), [&](size_t i) {
           return std::pair(samples.strata[i].new_tokens, samples.strata[i].new_tokens);
         })) {
      strata.push_back(end);
    }
  }
  std::ranges::stable_sort(strata, {}, [&](size_t i) {
    return std::pair(samples.strata[i].new_tokens, samples.prompts[i].shortest);
  });
  return strata;
}

const Group* group_named(const Samples& samples, size_t stratum, const std::string& arm) {
  const auto at = std::ranges::find(samples.arms, arm);
  return samples.find(stratum, static_cast<size_t>(at - samples.arms.begin()));
}

// Why the arm can't be fallen back to on the stratum; empty: it can.
std::string why_not_safe(const Samples& samples, size_t stratum, const std::string& arm,
                         const AnalysisOptions& options) {
  const Group* group = group_named(samples, stratum, arm);
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

Status check_rule(const PolicyRule& rule, const Samples& samples, const AnalysisOptions& options) {
  for (const size_t stratum : strata_of_rule(rule, samples)) {
    if (rule.arm.empty()) continue;
    const Group* group = group_named(samples, stratum, rule.arm);
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
  std::string text = format_significant(arm.ratio, 3);
  if (arm.interval) {
    text += fmt::format(" [{}, {}]", format_significant(arm.interval->low, 3),
                        format_significant(arm.interval->high, 3));
  }
  return text;
}

// The first stratum on which the rows choose another arm than the rule, in a sentence.
std::string difference_of(const PolicyRule& rule, const StratumChoice& choice,
                          const Samples& samples) {
  const std::string& scenario = samples.strata[choice.stratum].scenario;
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
                     takes, scenario, rows, because);
}

void hold_rule(const Samples& samples, PolicyRule& rule, Route& route) {
  std::vector<const StratumChoice*> choices;
  for (const size_t stratum : strata_of_rule(rule, samples)) {
    choices.push_back(&route.choices[stratum]);
  }
  if (choices.empty()) {
    route.differs.push_back(covered_text(rule) + ": the rows say nothing of these lengths");
  }
  bool told = false;
  for (const StratumChoice* choice : choices) {
    const auto slower = std::ranges::find(choice->slower, rule.arm, &ProvenArm::arm);
    if (slower != choice->slower.end()) {
      route.refuted.push_back(fmt::format(
          "{}: the policy takes {}, and the rows of {} prove it slower than {}: {} of its time",
          covered_text(rule), rule.arm, samples.strata[choice->stratum].scenario, choice->safe,
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
}

}  // namespace

Status check_given_policy(const Policy& policy, const Samples& samples, const Route& route) {
  ASSAY_CHECK(check_names(policy, samples));
  for (const PolicyRule& rule : policy.rules) {
    ASSAY_CHECK(check_rule(rule, samples, route.options));
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
