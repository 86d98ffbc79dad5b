// Policies that somebody else wrote: rules that the rows rule out, refute, or decide otherwise.
#include "routing/given_policy.h"

#include <gmock/gmock.h>

#include "routing/routed_bundle.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A policy of `study`'s rows after `change`, judged on the rows of `rows`.
Result<Route> judged_policy(RoutedBundle& study, RoutedBundle& rows,
                            const std::function<void(Policy&)>& change) {
  RouteRequest request{.analysis = {}, .policy = study.route().policy};
  change(*request.policy);
  return judge_route(rows.made.build(), request, nullptr);
}

std::string policy_refusal(const std::function<void(Policy&)>& change,
                           const std::function<void(RoutedBundle&)>& spoil = {}) {
  RoutedBundle study(two_routed_arms(0.7));
  RoutedBundle rows(two_routed_arms(0.7));
  if (spoil) spoil(rows);
  const auto route = judged_policy(study, rows, change);
  EXPECT_FALSE(route);
  return route ? "" : route.error().message;
}

Route kept_policy(
    double share, const std::function<void(Policy&)>& change = [](Policy&) {}) {
  RoutedBundle study(two_routed_arms(0.7));
  RoutedBundle rows(two_routed_arms(share));
  auto route = judged_policy(study, rows, change);
  EXPECT_TRUE(route) << route.error().message;
  return route ? *std::move(route) : Route();
}

TEST(GivenPolicy, ThatTheRowsGiveDiffersInNothing) {
  const Route route = kept_policy(0.7);
  EXPECT_THAT(route.differs, IsEmpty());
  EXPECT_THAT(route.failures(), IsEmpty());
  EXPECT_TRUE(route.policy == RoutedBundle(two_routed_arms(0.7)).route().policy);
}

TEST(GivenPolicy, AFallbackHasToBeSafe) {
  EXPECT_THAT(policy_refusal([](Policy& policy) { policy.fallback = "fast"; }),
              HasSubstr("expected a fallback that is safe, found \"fast\" for prefill"));
  EXPECT_THAT(policy_refusal([](Policy& policy) {
                policy.rules[0].arm = "eager";
                policy.rules[0].fallback = "fast";
              }),
              HasSubstr("(it ran compiled)"));
  EXPECT_THAT(policy_refusal([](Policy&) {},
                             [](RoutedBundle& rows) {
                               rows.made.lose(rows.cell("eager", 30), 3, RowStatus::kOom, "");
                             }),
              HasSubstr("expected a fallback that is safe, found \"eager\""));
  EXPECT_THAT(policy_refusal([](Policy& policy) {
                policy.rules[0].fallback.clear();
                policy.rules[0].triggers.clear();
              }),
              HasSubstr("expected a fallback beside \"fast\""));
}

TEST(GivenPolicy, ModelsAreThoseThatWereMeasured) {
  EXPECT_THAT(policy_refusal([](Policy& policy) { policy.rules[0].model = "gpt2-25x"; }),
              HasSubstr("expected one of the models gpt2-25m, found \"gpt2-25x\" (did you mean"));
}

TEST(GivenPolicy, ARuleBetweenMeasuredLengthsIsHeldAgainstBothEnds) {
  const auto between = [](Policy& policy) {
    policy.rules[0].shortest = 11;
    policy.rules[0].longest = 29;
    policy.rules[0].evidence.clear();
  };
  EXPECT_EQ(kept_policy(0.7, between).policy.rules[0].evidence.size(), 2u);
  EXPECT_THAT(policy_refusal(between,
                             [](RoutedBundle& rows) {
                               rows.made.lose(rows.cell("fast", 30), 3, RowStatus::kCrash, "");
                             }),
              HasSubstr("expected arms that may be chosen, found \"fast\""));
}

TEST(GivenPolicy, AnArmThatIsProvenSlowerFails) {
  const Route route = kept_policy(1.3);
  ASSERT_EQ(route.failures().size(), 3u) << "a stratum each";
  EXPECT_THAT(route.failures()[0],
              HasSubstr("prefill of gpt2-25m, 10-80 prompt tokens, batch 1: the policy takes fast, "
                        "and the rows of 10 tokens prove it slower than eager: 1.3"));
  EXPECT_EQ(route.policy.rules[0].evidence[0].verdict, kNotChosen);
}

TEST(GivenPolicy, AnArmThatIsNotChosenIsSaidAndDoesNotFail) {
  const Route equal = kept_policy(1);
  EXPECT_THAT(equal.failures(), IsEmpty());
  EXPECT_THAT(equal.differs,
              ElementsAre("prefill of gpt2-25m, 10-80 prompt tokens, batch 1: the policy takes "
                          "fast, and the rows of 10 tokens take eager"));
  const Route cautious = kept_policy(0.7, [](Policy& policy) {
    policy.rules[0].arm = "eager";
    policy.rules[0].fallback.clear();
    policy.rules[0].triggers.clear();
  });
  EXPECT_THAT(cautious.failures(), IsEmpty());
  EXPECT_THAT(cautious.differs, Contains(HasSubstr("the policy takes eager, and the rows of "
                                                   "10 tokens take fast (0.7")));
}

TEST(GivenPolicy, ItsEvidenceIsThatOfTheRows) {
  const Route route = kept_policy(0.8, [](Policy& policy) {
    policy.rules[0].evidence[0].ratio = 0.1;
    policy.rules[0].evidence[1].verdict = "ahead";
  });
  ASSERT_EQ(route.policy.rules[0].evidence.size(), 3u);
  EXPECT_NEAR(*route.policy.rules[0].evidence[0].ratio, 0.8, 0.02);
  EXPECT_EQ(route.policy.rules[0].evidence[1].verdict, "best");
}

TEST(GivenPolicy, AxesItDoesNotNameAreSaid) {
  const Route route = kept_policy(0.7, [](Policy& policy) { policy.identity.clear(); });
  ASSERT_EQ(route.differs.size(), 1u);
  EXPECT_THAT(route.differs[0], HasSubstr("of the identity ("));
  EXPECT_THAT(route.differs[0], HasSubstr("so it isn't held to"));
}

TEST(GivenPolicy, LengthsThatWereNotMeasuredAreSaid) {
  const Route route = kept_policy(0.7, [](Policy& policy) {
    PolicyRule rule = policy.rules[0];
    rule.shortest = 500;
    rule.longest = 600;
    rule.arm = "eager";
    rule.fallback.clear();
    rule.triggers.clear();
    rule.evidence.clear();
    policy.rules.push_back(rule);
  });
  EXPECT_THAT(route.differs, Contains(HasSubstr("500-600 prompt tokens, batch 1: the rows say "
                                                "nothing of these lengths")));
}

// Verdicts of the rule's evidence, each with the lengths that it is about.
std::vector<std::string> verdicts_at(const PolicyRule& rule) {
  std::vector<std::string> texts;
  for (const RuleEvidence& one : rule.evidence) {
    texts.push_back(fmt::format("{}-{} {}", one.shortest, one.longest, one.verdict));
  }
  return texts;
}

TEST(GivenPolicy, ARangeBeyondWhatWasMeasuredIsNamedAndProvesNothing) {
  const Route route = kept_policy(0.7, [](Policy& policy) {
    policy.rules[0].shortest = 1;
    policy.rules[0].longest = 1'000'000;
    for (RuleEvidence& forged : policy.rules[0].evidence) forged.longest = 1'000'000;
  });
  EXPECT_THAT(route.differs,
              ElementsAre("prefill of gpt2-25m, 1-1000000 prompt tokens, batch 1: the policy takes "
                          "fast at 1-9 and 81-1000000 prompt tokens, which nobody measured: the "
                          "rows leave these to the safe arm"));
  EXPECT_THAT(route.failures(), IsEmpty());
  EXPECT_THAT(verdicts_at(route.policy.rules[0]),
              ElementsAre("10-10 best", "30-30 best", "80-80 best", "1-9 not_measured",
                          "81-1000000 not_measured"));
  const auto text = policy_to_yaml(route.policy);
  const auto again = parse_policy(text, "policy");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again == route.policy);
}

TEST(GivenPolicy, ARuleThatServesOnlyWhatNobodyMeasuredProvesNothing) {
  for (const auto& move : std::vector<std::function<void(PolicyRule&)>>{
           [](PolicyRule& rule) { rule.shortest = 81, rule.longest = 90; },
           [](PolicyRule& rule) { rule.batch = 7; }}) {
    const Route route = kept_policy(0.7, [&](Policy& policy) {
      PolicyRule& rule = policy.rules[0];
      rule.triggers.clear();
      rule.evidence.clear();
      move(rule);
    });
    EXPECT_THAT(route.differs, ElementsAre(HasSubstr("which nobody measured")));
    EXPECT_THAT(verdicts_at(route.policy.rules[0]), Contains(testing::EndsWith(" not_measured")));
  }
}

TEST(GivenPolicy, ACompiledArmNeedsAFallbackWhereNobodyMeasuredToo) {
  EXPECT_THAT(policy_refusal([](Policy& policy) {
                PolicyRule& rule = policy.rules[0];
                rule.fallback.clear();
                rule.triggers.clear();
                rule.evidence.clear();
                rule.shortest = rule.longest = 500;
              }),
              HasSubstr("expected a fallback beside \"fast\""));
}

// Fast up to 30 tokens; at 80 tokens as slow as eager, or slower.
TEST(GivenPolicy, AGapIsServedByAnArmThatBothItsEndsProve) {
  RoutedBundle study(two_routed_arms(0.7));
  const auto judged = [&](double at_80, int64_t longest) {
    RoutedStudy other = two_routed_arms(0.7);
    other.arms[1].ms = [=](int64_t tokens) { return tokens == 80 ? 10 * at_80 : 7.0; };
    RoutedBundle rows(other);
    return *judged_policy(study, rows, [&](Policy& policy) {
      policy.rules[0].longest = longest;
      policy.rules[0].evidence.clear();
    });
  };
  EXPECT_THAT(judged(1, 30).differs, IsEmpty());
  const Route equal = judged(1, 31);
  EXPECT_THAT(equal.differs, ElementsAre(HasSubstr("the rows of 80 tokens take eager")));
  EXPECT_EQ(equal.policy.rules[0].evidence.back().verdict, kNotChosen);
  EXPECT_THAT(judged(1.3, 31).failures(), ElementsAre(HasSubstr("the rows of 80 tokens prove it "
                                                                "slower than eager")));
  EXPECT_THAT(judged(0.7, 79).differs, IsEmpty());
}

}  // namespace
}  // namespace assay
