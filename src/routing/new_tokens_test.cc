// Tests which arm serves a request between two measured numbers of new tokens.
#include <gmock/gmock.h>

#include "routing/routed_bundle.h"
#include "routing/simulate.h"

namespace assay {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Decoding of 64 and of 128 new tokens on two prompt lengths: eager takes 10 and 20 ms, fast 7 and
// `at_128`.
RoutedBundle two_counts(double at_128) {
  RoutedStudy study = two_routed_arms(0.7);
  study.lengths = {10, 80};
  study.phases = {Phase::kKvDecode};
  study.batches = {1, 2};
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) {
    if (row.batch != 2) continue;
    row.batch = 1;
    row.new_tokens = 128;
    if (row.arm == "fast") *row.latency_ms *= at_128 / 14;
  }
  return bundle;
}

const PolicyRule* decode_rule(const Policy& policy, int64_t new_tokens, int64_t prompt = 30) {
  return rule_of(policy, {"gpt2-25m", Phase::kKvDecode, 1, new_tokens, prompt});
}

TEST(BetweenNewTokens, AnArmThatBothTakeServes) {
  const Route route = two_counts(14).route();
  const PolicyRule* rule = decode_rule(route.policy, 100);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->new_tokens, 65);
  EXPECT_EQ(rule->most_new_tokens(), 127);
  EXPECT_EQ(rule->shortest, 10);
  EXPECT_EQ(rule->longest, 80);
  EXPECT_EQ(rule->arm, "fast");
  EXPECT_EQ(rule->fallback, "eager");
  ASSERT_EQ(rule->evidence.size(), 4u);
  EXPECT_EQ(rule->evidence[0].new_tokens, 64);
  EXPECT_EQ(rule->evidence[3].new_tokens, 128);
  EXPECT_THAT(rule->triggers.back().source, HasSubstr("none in 164 rows")) << "of both ends";
  EXPECT_EQ(decode_rule(route.policy, 64)->evidence.size(), 2u);
  EXPECT_EQ(decode_rule(route.policy, 63), nullptr);
  EXPECT_EQ(decode_rule(route.policy, 129), nullptr);
}

TEST(BetweenNewTokens, WhereTheyDifferNoRuleServes) {
  const Route route = two_counts(26).route();
  EXPECT_EQ(decode_rule(route.policy, 64)->arm, "fast");
  EXPECT_EQ(decode_rule(route.policy, 128)->arm, "eager");
  EXPECT_EQ(decode_rule(route.policy, 100), nullptr);
  EXPECT_EQ(route.policy.fallback, "eager");
}

TEST(BetweenNewTokens, BesideAnAbstentionNoRuleServes) {
  RoutedBundle bundle = two_counts(14);
  bundle.made.lose(bundle.cell("fast", 10, Phase::kKvDecode, 2), 3, RowStatus::kCrash, "SIGSEGV");
  const Route route = bundle.route();
  EXPECT_EQ(decode_rule(route.policy, 100, 10), nullptr);
  EXPECT_EQ(decode_rule(route.policy, 100, 80)->arm, "fast");
  EXPECT_EQ(decode_rule(route.policy, 100, 80)->shortest, 80);
}

TEST(BetweenNewTokens, WhereOneEndAbstainsNoRuleServesAlthoughBothTakeTheSafeArm) {
  for (const bool fewer : {true, false}) {
    RoutedStudy study = two_routed_arms(2);
    study.lengths = {10};
    study.phases = {Phase::kKvDecode};
    study.batches = {1, 2};
    study.noise = 0.1;
    RoutedBundle bundle(study);
    for (Row& row : bundle.made.raw().rows) {
      const bool undecided = (row.batch == 1) == fewer;  // between two arms as fast as one another
      if (undecided && row.arm == "fast") *row.latency_ms /= 2;
      if (row.batch == 2) row.new_tokens = 128;
      row.batch = 1;
    }
    const Route route = bundle.route();
    for (const int64_t count : {64, 128}) {
      EXPECT_EQ(decode_rule(route.policy, count, 10)->arm, "eager");
      EXPECT_EQ(decode_rule(route.policy, count, 10)->abstains, (count == 64) == fewer);
    }
    EXPECT_EQ(decode_rule(route.policy, 100, 10), nullptr);
    EXPECT_EQ(route.policy.fallback, "eager");
  }
}

TEST(BetweenNewTokens, ThePolicyIsReadBackAndHeldAgainstBothEnds) {
  RoutedBundle bundle = two_counts(14);
  const Policy policy = bundle.route().policy;
  const auto read = parse_policy(policy_to_yaml(policy), "policy.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == policy);
  const auto judged = judge_route(bundle.made.build(), {.analysis = {}, .policy = *read}, nullptr);
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_TRUE(judged->policy == policy);
  EXPECT_TRUE(judged->differs.empty());
  // A policy written by hand, without the evidence that names its ends.
  Policy alone = policy;
  std::erase_if(alone.rules, [](const PolicyRule& rule) { return rule.new_tokens != 65; });
  alone.rules[0].evidence.clear();
  RoutedBundle slower = two_counts(26);
  const auto refuted = judge_route(slower.made.build(), {.analysis = {}, .policy = alone}, nullptr);
  ASSERT_TRUE(refuted) << refuted.error().message;
  EXPECT_THAT(refuted->failures(),
              Contains(HasSubstr("65-127 new tokens, batch 1: the policy takes fast")));
}

TEST(BetweenNewTokens, ReplayedRequestsTakeTheArm) {
  RouteRequest request;
  std::vector<TraceRequest> trace;
  for (int64_t i = 0; i < 50; ++i) trace.push_back({static_cast<double>(i) * 10, 10, 96, 1});
  request.trace = TraceToReplay{"t.csv", trace, "", 40};
  const Route route = two_counts(14).route(request);
  const auto& all = route.simulation->strategies;
  const auto at = std::ranges::find(all, "policy", &SimulatedStrategy::name);
  ASSERT_NE(at, all.end());
  EXPECT_NEAR(at->p50_ms->mean, 10.5, 0.2);  // half way from 7 ms to 14
}

}  // namespace
}  // namespace assay
