// The decision rule of a policy in ten lines at most, for a person without the program.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/add_once.h"
#include "base/text/text.h"
#include "report/judgements/route_tables.h"

namespace assay {
namespace {

// Lines of arms at most: with the four others there are ten.
constexpr size_t kMostArmLines = 6;
constexpr size_t kMostPlacesALine = 4;

// Conditions that the policy's rules tell apart. A reader without the policy takes an unnamed
// condition for all of them.
struct MeasuredKeys {
  std::vector<std::string> models;
  std::set<int64_t> batches;
  // Ranges from the fewest to the most new tokens of the decoding rules; ranges that adjoin are
  // one.
  std::vector<std::pair<int64_t, int64_t>> new_tokens;
};

MeasuredKeys measured_keys(const Policy& policy) {
  MeasuredKeys keys;
  std::set<std::pair<int64_t, int64_t>> decoded;
  for (const PolicyRule& rule : policy.rules) {
    add_once(keys.models, rule.model);
    keys.batches.insert(rule.batch);
    if (decodes(rule.phase)) decoded.emplace(rule.new_tokens, rule.most_new_tokens());
  }
  for (const auto& [from, to] : decoded) {
    if (!keys.new_tokens.empty() && from <= keys.new_tokens.back().second + 1) {
      keys.new_tokens.back().second = std::max(keys.new_tokens.back().second, to);
    } else {
      keys.new_tokens.emplace_back(from, to);
    }
  }
  return keys;
}

std::string choices_text(const std::set<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(fmt::format("{}", number));
  return join(texts, " or ");
}

// Prompt lengths and numbers of new tokens for which an arm is taken: of a rule, and of those that
// go on from it in one of the two.
struct TakenRange {
  PolicyRule all;

  bool takes_in(const PolicyRule& rule) {
    if (all.batch != rule.batch) return false;
    const bool same_new =
        all.new_tokens == rule.new_tokens && all.new_tokens_span == rule.new_tokens_span;
    if (same_new && all.longest + 1 == rule.shortest) {
      all.longest = rule.longest;
      return true;
    }
    const bool same_lengths = all.shortest == rule.shortest && all.longest == rule.longest;
    if (!same_lengths || all.most_new_tokens() + 1 != rule.new_tokens) return false;
    all.new_tokens_span = rule.most_new_tokens() - all.new_tokens;
    return true;
  }
};

// "10-80 tokens (batch 2, 64 new tokens)"; conditions that all rules share are left out.
std::vector<std::string> range_texts(const std::vector<TakenRange>& ranges,
                                     const MeasuredKeys& keys) {
  std::vector<std::string> texts;
  for (const TakenRange& range : ranges) {
    const PolicyRule& rule = range.all;
    std::vector<std::string> only;
    if (keys.batches.size() > 1) only.push_back(fmt::format("batch {}", rule.batch));
    const std::pair own(rule.new_tokens, rule.most_new_tokens());
    if (decodes(rule.phase) && (keys.new_tokens != std::vector{own} || own.first < own.second)) {
      only.push_back(new_tokens_text(rule) + " new tokens");
    }
    texts.push_back(fmt::format("{} tokens{}", lengths_text(rule.shortest, rule.longest),
                                only.empty() ? "" : fmt::format(" ({})", join(only, ", "))));
  }
  return texts;
}

// An arm in a phase of a model, and where it is taken.
struct TakenArm {
  std::string model;
  std::string arm;
  Phase phase = Phase::kPrefill;
  std::vector<TakenRange> ranges;
};

// The rule without the lengths that a given policy serves beyond everything measured, where rule 1
// holds; absent: all of it lies there.
std::optional<PolicyRule> measured_part(PolicyRule rule) {
  for (const RuleEvidence& part : rule.evidence) {
    if (part.verdict != kNotMeasured) continue;
    if (part.shortest <= rule.shortest) rule.shortest = std::max(rule.shortest, part.longest + 1);
    if (part.longest >= rule.longest) rule.longest = std::min(rule.longest, part.shortest - 1);
  }
  if (rule.shortest > rule.longest) return std::nullopt;
  return rule;
}

std::vector<TakenArm> taken_arms(const Policy& policy) {
  std::vector<TakenArm> taken;
  for (const PolicyRule& whole : policy.rules) {
    if (whole.arm.empty() || whole.arm == policy.fallback) continue;
    const std::optional<PolicyRule> measured = measured_part(whole);
    if (!measured) continue;
    const PolicyRule& rule = *measured;
    auto at = std::ranges::find_if(taken, [&](const TakenArm& of) {
      return of.model == rule.model && of.arm == rule.arm && of.phase == rule.phase;
    });
    if (at == taken.end()) {
      taken.push_back({rule.model, rule.arm, rule.phase, {}});
      at = taken.end() - 1;
    }
    const bool goes_on =
        std::ranges::any_of(at->ranges, [&](TakenRange& range) { return range.takes_in(rule); });
    if (!goes_on) at->ranges.push_back({rule});
  }
  return taken;
}

std::string taken_text(const TakenArm& taken, const MeasuredKeys& keys) {
  std::vector<std::string> places = range_texts(taken.ranges, keys);
  const size_t more = places.size() > kMostPlacesALine ? places.size() - kMostPlacesALine : 0;
  places.resize(places.size() - more);
  return fmt::format("In {}{} take {} for prompts of {}{}.", phase_name(taken.phase),
                     keys.models.size() > 1 ? " of " + taken.model : "", taken.arm,
                     join(places, ", "),
                     more > 0 ? fmt::format(" and {} more ranges (see the policy)", more) : "");
}

// The parts of the identity that a person can look up.
std::string identity_text(const Policy& policy) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kAxes = {
      {{"device", "device"},
       {"code_generator", "code generator"},
       {"framework_build", "framework build"},
       {"code_sha", "commit"}}};
  std::vector<std::string> parts;
  for (const auto& [axis, word] : kAxes) {
    for (const auto& [name, value] : policy.identity) {
      if (name == axis) parts.push_back(fmt::format("{} {}", word, excerpt(value)));
    }
  }
  return parts.empty() ? "see the policy" : join(parts, ", ");
}

std::string measured_text(const MeasuredKeys& keys) {
  std::vector<std::string> parts;
  if (keys.models.size() == 1) parts.push_back(keys.models.front());
  if (!keys.batches.empty()) parts.push_back("batch " + choices_text(keys.batches));
  if (!keys.new_tokens.empty()) {
    std::vector<std::string> texts;
    for (const auto& [from, to] : keys.new_tokens) texts.push_back(lengths_text(from, to));
    parts.push_back(join(texts, " or ") + " new tokens where tokens are decoded");
  }
  return parts.empty() ? "nothing" : join(parts, ", ");
}

}  // namespace

std::vector<std::string> break_glass_lines(const Route& route) {
  const Policy& policy = route.policy;
  const MeasuredKeys keys = measured_keys(policy);
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text) {
    lines.push_back(fmt::format("{}. {}", lines.size() + 1, text));
  };
  add(policy.fallback.empty()
          ? fmt::format("In doubt refuse the request: {}.", route.policy_given
                                                                ? "the policy names no fallback"
                                                                : "no arm is safe on every stratum")
          : fmt::format("In doubt take {}. It lost no row and failed no check of its output on any "
                        "measured stratum.",
                        policy.fallback));
  add(
      fmt::format("Check the identity first: {}. If anything differs from it or from the rest of "
                  "the policy's identity, rule 1 holds.",
                  identity_text(policy)));
  const std::vector<TakenArm> taken = taken_arms(policy);
  const bool all = taken.size() <= kMostArmLines;
  const size_t shown = all ? taken.size() : kMostArmLines - 1;
  for (size_t i = 0; i < shown; ++i) add(taken_text(taken[i], keys));
  if (!all) add(fmt::format("{} more arms are taken: see the policy.", taken.size() - shown));
  if (taken.empty()) {
    add("No other arm is proven to be faster.");
  } else {
    add("Go back to rule 1 for good, arm by arm, at a lost request, a fall-back to eager, a "
        "recompile limit, or when the policy's limits of recompiles, graphs or p99 are passed.");
  }
  add(
      fmt::format("This was measured: {}. For any other length, batch or number of new tokens "
                  "rule 1 holds.",
                  measured_text(keys)));
  return lines;
}

}  // namespace assay
