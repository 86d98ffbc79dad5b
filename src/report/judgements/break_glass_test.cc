// The break-glass text: ten lines, and nothing that a reader without the policy takes for more than
// was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/judgements/route_tables.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

PolicyRule taken_rule(const std::string& arm, int64_t shortest, int64_t longest) {
  PolicyRule rule;
  rule.model = "gpt2-25m";
  rule.shortest = shortest;
  rule.longest = longest;
  rule.arm = arm;
  if (arm != "eager") rule.fallback = "eager";
  return rule;
}

std::vector<std::string> glass_of(std::vector<PolicyRule> rules) {
  Route route;
  route.policy.identity = {
      {"device", "CPU x 2"}, {"code_sha", "0123456789abcdef"}, {"arms.fast.cache", "static"}};
  route.policy.fallback = "eager";
  route.policy.rules = std::move(rules);
  return break_glass_lines(route);
}

TEST(BreakGlass, SaysTheRuleForOneModelAndBatch) {
  EXPECT_THAT(
      glass_of(
          {taken_rule("fast", 10, 30), taken_rule("fast", 31, 80), taken_rule("eager", 81, 200)}),
      ElementsAre("1. In doubt take eager. It lost no row and failed no check of its output on any "
                  "measured stratum.",
                  "2. Check the identity first: device CPU x 2, commit 0123456789abcdef. If "
                  "anything differs from it or from the rest of the policy's identity, rule 1 "
                  "holds.",
                  "3. In prefill take fast for prompts of 10-80 tokens.",
                  HasSubstr("4. Go back to rule 1 for good"),
                  "5. This was measured: gpt2-25m, batch 1. For any other length, batch or number "
                  "of new tokens rule 1 holds."));
}

// A given policy may serve more than anybody measured; a person is told to take the safe arm there.
TEST(BreakGlass, LengthsThatNobodyMeasuredAreTheSafeArms) {
  PolicyRule wide = taken_rule("fast", 1, 1'000'000);
  const auto part = [](int64_t shortest, int64_t longest, std::string_view verdict) {
    RuleEvidence evidence;
    evidence.shortest = shortest;
    evidence.longest = longest;
    evidence.verdict = verdict;
    return evidence;
  };
  wide.evidence = {part(10, 80, "best"), part(1, 9, kNotMeasured),
                   part(81, 1'000'000, kNotMeasured)};
  EXPECT_THAT(glass_of({wide}), Contains("3. In prefill take fast for prompts of 10-80 tokens."));
  Route route;
  route.policy.fallback = "eager";
  route.policy.rules = {wide};
  EXPECT_EQ(cell_text(rule_screen_table(route).rows[0].back()), "not measured in part");
  wide.evidence.erase(wide.evidence.begin());
  route.policy.rules = {wide};
  EXPECT_EQ(cell_text(rule_screen_table(route).rows[0].back()), "not measured");
  wide.evidence.front().longest = 1'000'000;
  EXPECT_THAT(glass_of({wide}), Contains("3. No other arm is proven to be faster."));
}

TEST(BreakGlass, AnArmOfOneModelIsNotTakenForAnother) {
  std::vector<PolicyRule> rules = {taken_rule("fast", 10, 80), taken_rule("eager", 10, 80)};
  rules[1].model = "gpt2-100m";
  const auto lines = glass_of(rules);
  EXPECT_THAT(lines, Contains("3. In prefill of gpt2-25m take fast for prompts of 10-80 tokens."));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("gpt2-100m take"))));
  rules[1].arm = "fast";
  EXPECT_THAT(glass_of(rules),
              Contains("4. In prefill of gpt2-100m take fast for prompts of 10-80 tokens."));
}

TEST(BreakGlass, ABatchOfSeveralIsNamedThoughItIsOne) {
  std::vector<PolicyRule> rules = {taken_rule("fast", 10, 80), taken_rule("eager", 10, 80)};
  rules[1].batch = 4;
  const auto lines = glass_of(rules);
  EXPECT_THAT(lines, Contains("3. In prefill take fast for prompts of 10-80 tokens (batch 1)."));
  EXPECT_THAT(lines.back(), HasSubstr("gpt2-25m, batch 1 or 4. For any other"));
}

TEST(BreakGlass, NumbersOfNewTokensAreNamed) {
  std::vector<PolicyRule> rules = {taken_rule("fast", 10, 80)};
  rules[0].phase = Phase::kKvDecode;
  rules[0].new_tokens = 64;
  EXPECT_THAT(glass_of(rules).back(), HasSubstr("batch 1, 64 new tokens where tokens are decoded"));
  rules.push_back(rules[0]);
  rules[1].new_tokens = 128;
  rules[1].arm = "eager";
  EXPECT_THAT(glass_of(rules),
              Contains("3. In kv_decode take fast for prompts of 10-80 tokens (64 new tokens)."));
}

TEST(BreakGlass, RangesOfNewTokensThatGoOnAreOne) {
  std::vector<PolicyRule> rules;
  for (const auto& [from, span] : {std::pair{8, 0}, {9, 54}, {64, 0}}) {
    rules.push_back(taken_rule("fast", 10, 80));
    rules.back().phase = Phase::kKvDecode;
    rules.back().new_tokens = from;
    rules.back().new_tokens_span = span;
  }
  EXPECT_THAT(glass_of(rules), Contains("3. In kv_decode take fast for prompts of 10-80 tokens "
                                        "(8-64 new tokens)."));
  EXPECT_THAT(glass_of(rules).back(), HasSubstr("batch 1, 8-64 new tokens where"));
  rules.erase(rules.begin() + 1);
  EXPECT_THAT(glass_of(rules), Contains("3. In kv_decode take fast for prompts of 10-80 tokens "
                                        "(8 new tokens), 10-80 tokens (64 new tokens)."));
}

TEST(BreakGlass, HasTenLinesAtMost) {
  std::vector<PolicyRule> rules;
  for (int i = 0; i < 6; ++i) rules.push_back(taken_rule(fmt::format("fast-{}", i), 10, 80));
  EXPECT_EQ(glass_of(rules).size(), 10u);
  EXPECT_THAT(glass_of(rules), Contains(HasSubstr("take fast-5 for")));
  rules.push_back(taken_rule("fast-6", 10, 80));
  EXPECT_EQ(glass_of(rules).size(), 10u);
  EXPECT_THAT(glass_of(rules), Contains("8. 2 more arms are taken: see the policy."));
  EXPECT_THAT(glass_of({}), Contains(EndsWith("No other arm is proven to be faster.")));
}

TEST(BreakGlass, WithoutASafeArmDoubtRefuses) {
  Route route;
  route.policy.rules = {taken_rule("fast", 10, 80)};
  EXPECT_THAT(break_glass_lines(route).front(), HasSubstr("In doubt refuse the request"));
  EXPECT_THAT(break_glass_lines(route), Contains(HasSubstr("identity first: see the policy.")));
}

}  // namespace
}  // namespace assay
