// Bounds of a rule against bounds of the measured strata.
#include "routing/rule_basis.h"

#include <algorithm>
#include <map>
#include <set>

#include "routing/derive.h"

namespace assay {
namespace {

// Strata of the rule's model, phase and batch, by their number of new tokens.
using StrataByNewTokens = std::map<int64_t, std::vector<size_t>>;

StrataByNewTokens strata_by_new_tokens(const PolicyRule& rule, const Samples& samples) {
  StrataByNewTokens all;
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    const Stratum& stratum = samples.strata[i];
    if (stratum.model != rule.model || stratum.phase != rule.phase || stratum.batch != rule.batch) {
      continue;
    }
    all[stratum.new_tokens].push_back(i);
  }
  return all;
}

RuleEvidence unmeasured_part(int64_t new_tokens, int64_t shortest, int64_t longest) {
  RuleEvidence part;
  part.new_tokens = new_tokens;
  part.shortest = shortest;
  part.longest = longest;
  part.verdict = kNotMeasured;
  return part;
}

// Adds, for one number of new tokens, the strata whose lengths the rule covers and, where an end of
// the rule isn't a measured length, the nearest beyond it, or kNotMeasured if there is none.
void add_lengths(const PolicyRule& rule, int64_t new_tokens, const std::vector<size_t>& strata,
                 const Samples& samples, std::set<size_t>& found,
                 std::vector<RuleEvidence>& beyond) {
  std::optional<size_t> below;
  std::optional<size_t> above;
  bool begins = false;
  bool ends = false;
  int64_t shortest = samples.prompts[strata.front()].shortest;
  int64_t longest = samples.prompts[strata.front()].longest;
  for (const size_t i : strata) {
    const PromptRange& prompts = samples.prompts[i];
    shortest = std::min(shortest, prompts.shortest);
    longest = std::max(longest, prompts.longest);
    if (prompts.longest < rule.shortest) {
      if (!below || prompts.longest > samples.prompts[*below].longest) below = i;
    } else if (prompts.shortest > rule.longest) {
      if (!above || prompts.shortest < samples.prompts[*above].shortest) above = i;
    } else {
      found.insert(i);
      begins = begins || prompts.shortest <= rule.shortest;
      ends = ends || prompts.longest >= rule.longest;
    }
  }
  if (!begins && below) found.insert(*below);
  if (!ends && above) found.insert(*above);
  if (rule.shortest < shortest) {
    beyond.push_back(
        unmeasured_part(new_tokens, rule.shortest, std::min(rule.longest, shortest - 1)));
  }
  if (rule.longest > longest) {
    beyond.push_back(
        unmeasured_part(new_tokens, std::max(rule.shortest, longest + 1), rule.longest));
  }
}

// The measured numbers of new tokens that the rule covers, and the nearest beyond an end that isn't
// one of them.
std::vector<int64_t> new_tokens_of(const PolicyRule& rule, const StrataByNewTokens& all,
                                   std::vector<RuleEvidence>& beyond) {
  std::vector<int64_t> numbers;
  const auto first = all.lower_bound(rule.new_tokens);
  const auto past = all.upper_bound(rule.most_new_tokens());
  const auto whole = [&](int64_t new_tokens) {
    beyond.push_back(unmeasured_part(new_tokens, rule.shortest, rule.longest));
  };
  if (first == all.end() || first->first != rule.new_tokens) {
    if (first == all.begin()) {
      whole(rule.new_tokens);
    } else {
      numbers.push_back(std::prev(first)->first);
    }
  }
  for (auto at = first; at != past; ++at) numbers.push_back(at->first);
  if (!all.contains(rule.most_new_tokens())) {
    if (past == all.end()) {
      whole(rule.most_new_tokens());
    } else {
      numbers.push_back(past->first);
    }
  }
  return numbers;
}

}  // namespace

RuleBasis basis_of_rule(const PolicyRule& rule, const Policy& policy, const Samples& samples) {
  const StrataByNewTokens all = strata_by_new_tokens(rule, samples);
  RuleBasis basis;
  std::set<size_t> found;
  if (rule.arm.empty() || rule.arm == policy.fallback) {
    for (const auto& [new_tokens, strata] : all) {
      if (new_tokens < rule.new_tokens || new_tokens > rule.most_new_tokens()) continue;
      for (const size_t i : strata) {
        const PromptRange& prompts = samples.prompts[i];
        const bool served = rule.shortest <= prompts.longest && prompts.shortest <= rule.longest;
        if (served) found.insert(i);
      }
    }
  } else {
    for (const int64_t new_tokens : new_tokens_of(rule, all, basis.beyond)) {
      add_lengths(rule, new_tokens, all.at(new_tokens), samples, found, basis.beyond);
    }
  }
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    if (rests_on(rule, samples.strata[i], samples.prompts[i])) found.insert(i);
  }
  basis.strata.assign(found.begin(), found.end());
  std::ranges::stable_sort(basis.strata, {}, [&](size_t i) {
    return std::pair(samples.strata[i].new_tokens, samples.prompts[i].shortest);
  });
  return basis;
}

}  // namespace assay
