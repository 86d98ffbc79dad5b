// Rules between strata that choose different arms: the arm that is proven faster than the safe one
// on all of them serves, or none.
#include <gmock/gmock.h>

#include <cmath>

#include "routing/routed_bundle.h"
#include "routing/simulate.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Eager takes 10 ms. Static is the fastest at 10 tokens, dynamic at 80; `third` is proven at both
// ends, and behind them.
RoutedStudy crossing_arms(double static_at_80, double dynamic_at_10) {
  RoutedStudy study;
  study.arms = {{"eager", false},
                {"static", true, [=](int64_t n) { return n < 50 ? 6.0 : static_at_80; }},
                {"dynamic", true, [=](int64_t n) { return n < 50 ? dynamic_at_10 : 6.0; }},
                {"third", true, [](int64_t) { return 9.5; }}};
  study.lengths = {10, 80};
  study.noise = 0.005;
  return study;
}

TEST(BetweenChoices, LengthsThatFollowOneAnotherHaveNothingBetween) {
  RoutedStudy study = two_routed_arms(1);
  study.arms[1].ms = [](int64_t length) { return length == 30 ? 13.0 : 7.0; };
  study.lengths = {30, 31};
  const Route route = RoutedBundle(study).route();
  ASSERT_EQ(route.policy.rules.size(), 2u);
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_EQ(rule_at(route, 31).arm, "fast");
}

TEST(BetweenChoices, TheArmThatIsProvenAtBothEndsServes) {
  RoutedBundle bundle(crossing_arms(9, 8));
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 10).arm, "static");
  EXPECT_EQ(rule_at(route, 80).arm, "dynamic");
  const PolicyRule& rule = rule_at(route, 40);
  EXPECT_EQ(rule.shortest, 11);
  EXPECT_EQ(rule.longest, 79);
  EXPECT_EQ(rule.arm, "dynamic") << "0.8 and 0.6 of eager's time beside 0.6 and 0.9";
  EXPECT_EQ(rule.fallback, "eager");
  EXPECT_FALSE(rule.abstains);
  EXPECT_EQ(rule.because,
            "10 prompt tokens take static and 80 take dynamic; where that changes wasn't measured. "
            "Both ends show that dynamic is faster than eager");
  ASSERT_EQ(rule.evidence.size(), 2u);
  EXPECT_EQ(rule.evidence[0].verdict, kFasterThanSafe);
  EXPECT_NEAR(*rule.evidence[0].ratio, 0.8, 0.02);
  EXPECT_LT(rule.evidence[0].interval->high, 1);
  EXPECT_EQ(rule.evidence[0].rows, 40);
  EXPECT_EQ(rule.evidence[1].verdict, "best");
  EXPECT_NEAR(*rule.evidence[1].ratio, 0.6, 0.02);
  EXPECT_THAT(rule_at(RoutedBundle(crossing_arms(7, 8)).route(), 40).arm, "static");
}

TEST(BetweenChoices, ItsTriggersComeFromTheRowsOfBothEnds) {
  RoutedBundle bundle(crossing_arms(9, 8));
  bundle.made.compile(bundle.cell("dynamic", 10), 20, 0);
  bundle.made.compile(bundle.cell("dynamic", 10), 21, 0);
  bundle.made.compile(bundle.cell("dynamic", 80), 20, 0);
  bundle.made.compile(bundle.cell("dynamic", 80), 21, 0);
  const Route route = bundle.route();
  ASSERT_FALSE(rule_at(route, 40).triggers.empty());
  EXPECT_THAT(rule_at(route, 40).triggers[0].source, HasSubstr("of 80 warm rows compiled"));
  EXPECT_THAT(rule_at(route, 80).triggers[0].source, HasSubstr("of 40 warm rows compiled"));
  EXPECT_THAT(route.policy.not_measured,
              testing::Contains(HasSubstr("p99 of dynamic in prefill of gpt2-25m, 11-79 prompt "
                                          "tokens, batch 1: not decided")));
}

TEST(BetweenChoices, WhereNoArmIsProvenAtBothEndsItAbstains) {
  RoutedStudy study = crossing_arms(13, 13);
  study.arms.pop_back();
  const Route route = RoutedBundle(study).route();
  EXPECT_EQ(rule_at(route, 10).arm, "static");
  EXPECT_EQ(rule_at(route, 80).arm, "dynamic");
  const PolicyRule& rule = rule_at(route, 40);
  EXPECT_EQ(rule.arm, "eager");
  EXPECT_EQ(rule.fallback, "");
  EXPECT_TRUE(rule.abstains);
  EXPECT_THAT(rule.evidence, IsEmpty());
  EXPECT_THAT(rule.triggers, IsEmpty());
  EXPECT_EQ(rule.because,
            "10 prompt tokens take static and 80 take dynamic; where that changes wasn't measured");
}

TEST(BetweenChoices, AnotherArmThanBothEndsChooseMayServe) {
  EXPECT_EQ(rule_at(RoutedBundle(crossing_arms(13, 13)).route(), 40).arm, "third");
}

TEST(BetweenChoices, AnArmThatIsBarredAtOneEndNeverServes) {
  RoutedStudy study = crossing_arms(9, 8);
  study.arms.pop_back();
  RoutedBundle bundle(study);
  bundle.made.lose(bundle.cell("dynamic", 10), 7, RowStatus::kCrash, "SIGSEGV");
  EXPECT_EQ(rule_at(bundle.route(), 40).arm, "static") << "the other one is proven too";
  // Compared all the same, and with no proof that it ran compiled.
  bundle.made.evidence(bundle.cell("static", 80))["compiler_real"] = "label_only";
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 10).arm, "static");
  EXPECT_EQ(rule_at(route, 80).arm, "dynamic");
  EXPECT_EQ(rule_at(route, 40).arm, "eager");
  EXPECT_TRUE(rule_at(route, 40).abstains);
}

TEST(BetweenChoices, BesideAVoidComparisonOrAnotherSafeArmItAbstains) {
  RoutedStudy study = crossing_arms(9, 8);
  study.arms.push_back({"eager-static", false, [](int64_t) { return 12.0; }});
  RoutedBundle other(study);
  for (const int64_t length : study.lengths) {
    other.made.lose(other.cell("eager", length), 7, RowStatus::kOom, "");
  }
  const Route beside = other.route();
  EXPECT_EQ(rule_at(beside, 40).arm, "eager-static") << "nothing was held against it";
  EXPECT_TRUE(rule_at(beside, 40).abstains);
  RoutedBundle in_sequence(crossing_arms(9, 8));
  in_sequence.made.raw().manifest["study"]["order"] = "sequential";
  const Route without = in_sequence.route();
  EXPECT_EQ(rule_at(without, 40).arm, "eager");
  for (const StratumChoice& choice : without.choices) EXPECT_THAT(choice.proven, IsEmpty());
}

// The scenario of 11 tokens becomes a second one of 10.
RoutedBundle two_scenarios_of_a_length(double static_at_11, double dynamic_at_10) {
  RoutedStudy study;
  study.arms = {{"eager", false},
                {"static", true, [=](int64_t n) { return n == 10 ? 6.0 : static_at_11; }},
                {"dynamic", true, [=](int64_t n) { return n == 10 ? dynamic_at_10 : 6.0; }}};
  study.lengths = {10, 11};
  study.noise = 0.005;
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) row.prompt_tokens = 10;
  return bundle;
}

TEST(BetweenChoices, OverStrataOfTheSameLengthsAnArmServesThatIsProvenOnAll) {
  const Route route = two_scenarios_of_a_length(9, 8).route();
  ASSERT_EQ(route.policy.rules.size(), 1u);
  const PolicyRule& rule = route.policy.rules[0];
  EXPECT_EQ(rule.arm, "dynamic");
  EXPECT_EQ(rule.fallback, "eager");
  EXPECT_FALSE(rule.abstains);
  EXPECT_EQ(rule.because,
            "strata of the same lengths choose static for 10 tokens (prompt_10) and dynamic for 10 "
            "tokens (prompt_11); "
            "dynamic is proven faster than eager on each of them");
  ASSERT_EQ(rule.evidence.size(), 2u);
  EXPECT_EQ(rule.evidence[0].verdict, kFasterThanSafe);
  EXPECT_FALSE(rule.triggers.empty());
  EXPECT_EQ(route.validation->differ, 0);
  EXPECT_NEAR(route.validation->in_sample, std::sqrt(0.8 * 0.6), 0.02);
}

TEST(BetweenChoices, OverStrataOfTheSameLengthsItAbstainsElseAndIsJudgedByThat) {
  const Route route = two_scenarios_of_a_length(13, 13).route();
  ASSERT_EQ(route.policy.rules.size(), 1u);
  EXPECT_EQ(route.policy.rules[0].arm, "eager");
  EXPECT_TRUE(route.policy.rules[0].abstains);
  EXPECT_NEAR(route.validation->in_sample, 1, 1e-9) << "halves are judged by what they serve";
}

TEST(BetweenChoices, ReplayedRequestsBetweenTheEndsTakeTheArm) {
  RouteRequest request;
  std::vector<TraceRequest> trace;
  for (int64_t i = 0; i < 50; ++i) trace.push_back({static_cast<double>(i) * 10, 45, 0, 1});
  request.trace = TraceToReplay{"t.csv", trace, "", 40};
  const Route route = RoutedBundle(crossing_arms(9, 8)).route(request);
  const auto& all = route.simulation->strategies;
  const auto at = std::ranges::find(all, "policy", &SimulatedStrategy::name);
  ASSERT_NE(at, all.end());
  EXPECT_NEAR(at->p50_ms->mean, 7, 0.1);  // half way from 8 ms to 6
}

TEST(BetweenChoices, AGivenPolicyIsRefusedWhereAnEndBarsItsArm) {
  RoutedBundle bundle(crossing_arms(9, 8));
  Policy policy = bundle.route().policy;
  std::erase_if(policy.rules, [](const PolicyRule& rule) { return rule.shortest != 11; });
  ASSERT_EQ(policy.rules.size(), 1u);
  const RouteRequest request{.analysis = {}, .policy = policy};
  EXPECT_TRUE(judge_route(bundle.made.build(), request, nullptr));
  bundle.made.lose(bundle.cell("dynamic", 10), 7, RowStatus::kCrash, "SIGSEGV");
  EXPECT_THAT(judge_route(bundle.made.build(), request, nullptr).error().message,
              HasSubstr("expected arms that may be chosen, found \"dynamic\""));
}

TEST(BetweenChoices, WhatIsProvenIsInTheJson) {
  const Json json = route_to_json(RoutedBundle(crossing_arms(9, 13)).route());
  std::vector<std::string> arms;
  for (const Json& proven : json["strata"][0]["proven"]) arms.push_back(proven["arm"]);
  EXPECT_THAT(arms, ElementsAre("static", "third"));
}

}  // namespace
}  // namespace assay
