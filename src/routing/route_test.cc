// Policies from rows: the chosen arm, abstentions, and arms that may never be chosen.
#include "routing/route.h"

#include <gmock/gmock.h>

#include "analysis/analyze.h"
#include "routing/merge.h"
#include "routing/routed_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> trigger_words(const PolicyRule& rule) {
  std::vector<std::string> words;
  for (const PolicyTrigger& trigger : rule.triggers) words.emplace_back(trigger_name(trigger.kind));
  return words;
}

TEST(Routing, AFasterArmIsTakenFromTheShortestToTheLongestLength) {
  const Route route = RoutedBundle(two_routed_arms(0.7)).route();
  ASSERT_EQ(route.policy.rules.size(), 1u);
  const PolicyRule& rule = route.policy.rules[0];
  EXPECT_EQ(rule.arm, "fast");
  EXPECT_EQ(rule.fallback, "eager");
  EXPECT_EQ(rule.shortest, 10);
  EXPECT_EQ(rule.longest, 80);
  EXPECT_FALSE(rule.abstains);
  ASSERT_EQ(rule.evidence.size(), 3u);
  EXPECT_EQ(rule.evidence[0].verdict, "best");
  EXPECT_NEAR(*rule.evidence[0].ratio, 0.7, 0.02);
  EXPECT_LT(rule.evidence[0].interval->high, 0.75);
  EXPECT_EQ(rule.evidence[0].rows, 40);
  EXPECT_EQ(route.policy.fallback, "eager");
  EXPECT_THAT(route.failures(), IsEmpty());
}

TEST(Routing, ASlowerArmIsNotTakenAndThatIsNoAbstention) {
  const Route route = RoutedBundle(two_routed_arms(1.3)).route();
  const PolicyRule& rule = rule_at(route, 30);
  EXPECT_EQ(rule.arm, "eager");
  EXPECT_EQ(rule.fallback, "");
  EXPECT_FALSE(rule.abstains);
  EXPECT_THAT(rule.triggers, IsEmpty());
}

TEST(Routing, EquivalentArmsTakeTheSafeOne) {
  const Route route = RoutedBundle(two_routed_arms(1)).route();
  const PolicyRule& rule = rule_at(route, 30);
  EXPECT_EQ(rule.arm, "eager");
  EXPECT_FALSE(rule.abstains);
  EXPECT_EQ(rule.evidence[0].verdict, "no_difference");
}

TEST(Routing, WhereTheRowsDontTellItAbstains) {
  RoutedStudy study = two_routed_arms(0.97);
  study.arms.push_back({"other", true, [](int64_t) { return 9.8; }});
  study.noise = 0.4;
  study.repetitions = 16;
  const Route route = RoutedBundle(study).route();
  const PolicyRule& rule = rule_at(route, 30);
  EXPECT_EQ(rule.arm, "eager");
  EXPECT_TRUE(rule.abstains);
  EXPECT_EQ(rule.because, "undecided between eager, fast and other");
}

TEST(Routing, AVoidComparisonAbstains) {
  RoutedBundle bundle(two_routed_arms(0.7));
  bundle.made.raw().manifest["study"]["order"] = "sequential";
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_TRUE(rule_at(route, 30).abstains);
  EXPECT_THAT(rule_at(route, 30).because, HasSubstr("one after the other"));
}

TEST(Routing, BetweenDifferentChoicesTheSafeArmServes) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[1].ms = [](int64_t tokens) { return tokens < 50 ? 7.0 : 13.0; };
  const Route route = RoutedBundle(study).route();
  EXPECT_EQ(rule_at(route, 20).arm, "fast");
  EXPECT_EQ(rule_at(route, 30).arm, "fast");
  EXPECT_EQ(rule_at(route, 31).arm, "eager");
  EXPECT_TRUE(rule_at(route, 79).abstains == rule_at(route, 31).abstains);
  EXPECT_TRUE(rule_at(route, 31).abstains);
  EXPECT_THAT(rule_at(route, 31).because, HasSubstr("where that changes wasn't measured"));
  EXPECT_FALSE(rule_at(route, 80).abstains);
  EXPECT_EQ(rule_of(route.policy, {"gpt2-25m", Phase::kPrefill, 1, 0, 9}), nullptr);
  EXPECT_EQ(rule_of(route.policy, {"gpt2-25m", Phase::kPrefill, 1, 0, 81}), nullptr);
  EXPECT_EQ(rule_of(route.policy, {"gpt2-25m", Phase::kPrefill, 2, 0, 30}), nullptr);
  EXPECT_EQ(rule_of(route.policy, {"gpt2-50m", Phase::kPrefill, 1, 0, 30}), nullptr);
}

TEST(Routing, ALengthBetweenADecisionAndAnAbstentionForOneArmAbstains) {
  RoutedStudy study = two_routed_arms(1.3);
  study.lengths = {10, 80};
  RoutedBundle bundle(study);
  // On the longest prompts nothing can be compared, because the fast arm lost a row.
  bundle.made.lose(bundle.cell("fast", 80), 3, RowStatus::kCrash, "SIGSEGV");
  const Route route = bundle.route();
  EXPECT_FALSE(rule_at(route, 10).abstains);
  EXPECT_EQ(rule_at(route, 40).arm, "eager");
  EXPECT_EQ(rule_at(route, 40).abstains, rule_at(route, 80).abstains);
}

// An arm that is faster and has one defect on one length: never chosen there, and chosen beside it.
void expect_barred(const std::function<void(RoutedBundle&, const std::string& cell)>& spoil,
                   const std::string& reason) {
  RoutedBundle bundle(two_routed_arms(0.7));
  EXPECT_EQ(rule_at(bundle.route(), 30).arm, "fast");
  spoil(bundle, bundle.cell("fast", 30));
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_EQ(rule_at(route, 10).arm, "fast");
  EXPECT_EQ(rule_at(route, 80).arm, "fast");
  EXPECT_EQ(rule_at(route, 20).arm, "eager") << "beside it nothing is known of the fast arm";
  ASSERT_EQ(route.barred.size(), 1u);
  EXPECT_EQ(route.barred[0].arm, "fast");
  EXPECT_THAT(route.barred[0].reason, HasSubstr(reason));
  EXPECT_THAT(route.failures(), IsEmpty());
}

TEST(Routing, AnArmThatLostARowIsNeverChosen) {
  expect_barred(
      [](RoutedBundle& bundle, const std::string& cell) {
        bundle.made.lose(cell, 7, RowStatus::kCrash, "SIGSEGV");
      },
      "lost 1 of 41 rows");
}

TEST(Routing, AnArmThatLostAWarmUpIsNeverChosen) {
  expect_barred(
      [](RoutedBundle& bundle, const std::string& cell) {
        bundle.made.lose(cell, -1, RowStatus::kTimeout, "");
      },
      "lost 1 of 41 rows");
}

TEST(Routing, AnArmWhoseOutputDiffersIsNeverChosen) {
  expect_barred([](RoutedBundle& bundle,
                   const std::string& cell) { bundle.made.raw().parity[cell]["passed"] = false; },
                "parity failed");
}

TEST(Routing, ALabelIsNoCompiler) {
  for (const char* verdict : {"label_only", "unproven", "fallback"}) {
    expect_barred(
        [&](RoutedBundle& bundle, const std::string& cell) {
          bundle.made.evidence(cell)["compiler_real"] = verdict;
        },
        "requested a compiler, but");
  }
  expect_barred(
      [](RoutedBundle& bundle, const std::string& cell) { bundle.made.drop_evidence(cell); },
      "nothing proves");
}

TEST(Routing, AnArmThatRanEagerInARowIsNeverChosen) {
  expect_barred(
      [](RoutedBundle& bundle, const std::string& cell) {
        bundle.made.row(cell, 5).counts[Counter::kFallbacks] = 1;
      },
      "calls ran eager in 1 of 40 timed rows");
}

TEST(Routing, WithoutASafeArmNothingIsChosenAndItFails) {
  RoutedBundle bundle(two_routed_arms(0.7));
  bundle.made.lose(bundle.cell("eager", 30), 7, RowStatus::kOom, "");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).arm, "");
  EXPECT_EQ(rule_at(route, 30).fallback, "");
  EXPECT_EQ(rule_at(route, 10).arm, "fast");
  EXPECT_EQ(rule_of(route.policy, {"gpt2-25m", Phase::kPrefill, 1, 0, 20}), nullptr);
  EXPECT_EQ(route.policy.fallback, "");
  ASSERT_EQ(route.failures().size(), 1u);
  EXPECT_THAT(route.failures()[0], HasSubstr("no arm is safe: eager: lost 1 of 41 rows"));
}

TEST(Routing, AnotherEagerArmStandsForABaselineThatIsNotSafe) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms.push_back({"eager-static", false, [](int64_t) { return 12.0; }});
  RoutedBundle bundle(study);
  bundle.made.lose(bundle.cell("eager", 30), 7, RowStatus::kOom, "");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).fallback, "eager-static");
  EXPECT_EQ(rule_at(route, 30).arm, "fast") << "it is faster than every arm that lost nothing";
  EXPECT_EQ(rule_at(route, 10).fallback, "eager");
  EXPECT_THAT(route.failures(), IsEmpty());
}

TEST(Routing, AStudyWithoutAnEagerArmHasNoSafeOne) {
  RoutedStudy study;
  study.arms = {{"slow", true}, {"fast", true, [](int64_t) { return 7.0; }}};
  const Route route = RoutedBundle(study).route();
  EXPECT_EQ(rule_at(route, 30).arm, "");
  ASSERT_EQ(route.failures().size(), 3u);
  EXPECT_THAT(route.failures()[0], HasSubstr("no eager arm was measured"));
}

TEST(Routing, TriggersComeFromTheRowsOfTheRule) {
  RoutedStudy study = two_routed_arms(0.7);
  study.repetitions = 104;
  RoutedBundle bundle(study);
  for (const int64_t length : {10, 30, 80}) {
    for (const int64_t repetition : {-1, 20}) {
      bundle.made.compile(bundle.cell("fast", length), repetition, 0);
    }
  }
  for (const int64_t repetition : {3, 4}) {
    bundle.made.row(bundle.cell("fast", 30), repetition).latency_ms = 8.5 + 0.1 * repetition - 0.3;
  }
  const PolicyRule rule = rule_at(bundle.route(), 30);
  EXPECT_THAT(trigger_words(rule),
              ElementsAre("recompile_after_warmup", "unique_graphs", "recompile_limit", "fallback",
                          "lost_row", "p99_ms"));
  ASSERT_EQ(rule.triggers.size(), 6u);
  EXPECT_EQ(rule.triggers[0].source, "3 of 312 warm rows compiled");
  EXPECT_EQ(rule.triggers[0].window, 100);
  EXPECT_GT(rule.triggers[0].allowed, 3);
  EXPECT_EQ(rule.triggers[1].allowed, 6);  // two graphs a length
  EXPECT_EQ(rule.triggers[4].allowed, 0);
  EXPECT_THAT(rule.triggers[4].source, HasSubstr("none in 315 rows"));
  EXPECT_EQ(*rule.triggers[5].limit_ms, 8.5);
  EXPECT_EQ(rule.triggers[5].source, "1 of 104 warm rows took longer");
}

TEST(Routing, UniqueGraphsHaveATriggerWhereSomebodyCountedThem) {
  RoutedBundle bundle(two_routed_arms(0.7));
  EXPECT_THAT(trigger_words(rule_at(bundle.route(), 30)),
              testing::Not(testing::Contains("unique_graphs")));
  for (const int64_t length : {10, 30}) bundle.made.compile(bundle.cell("fast", length), -1, 0);
  EXPECT_THAT(trigger_words(rule_at(bundle.route(), 30)),
              testing::Not(testing::Contains("unique_graphs")))
      << "on 80 tokens nobody did";
  bundle.made.compile(bundle.cell("fast", 80), -1, 0);
  EXPECT_THAT(trigger_words(rule_at(bundle.route(), 30)), testing::Contains("unique_graphs"));
}

TEST(Routing, EvidenceHasTheTimesOfBothArms) {
  RoutedStudy study = two_routed_arms(0.7);
  study.repetitions = 104;
  RoutedBundle bundle(study);
  bundle.made.compile(bundle.cell("fast", 30), -1, 900);
  const RuleEvidence evidence = rule_at(bundle.route(), 30).evidence[1];
  EXPECT_NEAR(*evidence.mean_ms, 7, 0.1);
  EXPECT_NEAR(*evidence.fallback_mean_ms, 10, 0.1);
  EXPECT_GT(*evidence.p99_ms, *evidence.mean_ms);
  EXPECT_GT(*evidence.fallback_p99_ms, *evidence.fallback_mean_ms);
  EXPECT_EQ(*evidence.compile_ms, 900);
  const Route few = RoutedBundle(two_routed_arms(0.7)).route();
  EXPECT_FALSE(rule_at(few, 30).evidence[1].p99_ms) << "40 rows";
  EXPECT_FALSE(rule_at(few, 30).evidence[1].compile_ms) << "nothing compiled";
}

TEST(Routing, FewRowsCantBoundP99) {
  RoutedStudy study = two_routed_arms(0.7);
  const auto undecided = [](const Route& route) {
    return std::ranges::count_if(route.policy.not_measured, [](const std::string& text) {
      return text.ends_with("can't bound p99 (it takes 100)");
    });
  };
  study.repetitions = 96;
  const Route few = RoutedBundle(study).route();
  EXPECT_THAT(trigger_words(rule_at(few, 30)), testing::Not(testing::Contains("p99_ms")));
  EXPECT_EQ(undecided(few), 1);
  EXPECT_THAT(few.policy.not_measured.back(),
              HasSubstr("p99 of fast in prefill of gpt2-25m, 10-80 prompt tokens, batch 1: not "
                        "decided: 96 warm rows"));
  study.repetitions = 104;
  const Route enough = RoutedBundle(study).route();
  EXPECT_THAT(trigger_words(rule_at(enough, 30)), testing::Contains("p99_ms"));
  EXPECT_EQ(undecided(enough), 0);
}

TEST(Routing, RulesThatDifferInNewTokensAloneShareTheirLineAboutP99) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kKvDecode};
  study.batches = {1, 4};
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) {
    if (row.batch == 4) row.new_tokens = 128;
    row.batch = 1;
  }
  std::vector<std::string> lines;
  for (const std::string& line : bundle.route().policy.not_measured) {
    if (line.starts_with("p99")) lines.push_back(line);
  }
  EXPECT_THAT(
      lines, ElementsAre("p99 of fast in kv_decode of gpt2-25m, 10-80 prompt tokens, batch "
                         "1, new tokens 64, 65-127, 128: not decided: 40 warm rows can't bound p99 "
                         "(it takes 100)"));
}

TEST(Routing, WithoutAMeasuredRecompileTheFirstOneFires) {
  const PolicyRule rule = rule_at(RoutedBundle(two_routed_arms(0.7)).route(), 30);
  ASSERT_FALSE(rule.triggers.empty());
  EXPECT_EQ(rule.triggers[0].allowed, 0);
  EXPECT_EQ(rule.triggers[0].window, 0);
}

TEST(Routing, BatchesAndPhasesHaveRulesOfTheirOwn) {
  RoutedStudy study = two_routed_arms(0.7);
  study.batches = {1, 4};
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  const std::string& cell = bundle.cell("fast", 30, Phase::kKvDecode, 4);
  bundle.made.lose(cell, 3, RowStatus::kCrash, "SIGSEGV");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30, 4, Phase::kKvDecode).arm, "eager");
  EXPECT_EQ(rule_at(route, 30, 1, Phase::kKvDecode).arm, "fast");
  EXPECT_EQ(rule_at(route, 30, 4).arm, "fast");
}

TEST(Routing, WhatIsNotMeasuredIsSaid) {
  RoutedStudy study = two_routed_arms(0.7);
  study.batches = {1, 4};
  const Policy policy = RoutedBundle(study).route().policy;
  ASSERT_EQ(policy.not_measured.size(), 5u) << "two of them of p99, a batch each";
  EXPECT_EQ(policy.not_measured[0],
            "prefill of gpt2-25m: prompts below 10 and above 80 tokens, and between measured "
            "lengths: 11-29, 31-79; batches other than 1 and 4");
  EXPECT_EQ(policy.not_measured[1], "all of kv_decode");
}

TEST(Routing, AGivenPolicyIsHeldAgainstTheIdentityAndTheArms) {
  RoutedBundle bundle(two_routed_arms(0.7));
  const Bundle made = bundle.made.build();
  RouteRequest request{.analysis = {}, .policy = bundle.route().policy};
  EXPECT_TRUE(judge_route(made, request, nullptr)->policy_given);
  RouteRequest other = request;
  other.policy->identity[0].second = "Another CPU";
  EXPECT_THAT(judge_route(made, other, nullptr).error().message,
              HasSubstr(": expected the identity that the policy states, found another: cpu: "
                        "expected \"Another CPU\", found \"Example CPU 2.0\""));
  other = request;
  other.policy->rules[0].arm = "fasd";
  EXPECT_THAT(judge_route(made, other, nullptr).error().message,
              HasSubstr("did you mean \"fast\"?"));
  bundle.made.lose(bundle.cell("fast", 80), 3, RowStatus::kCrash, "SIGSEGV");
  EXPECT_THAT(judge_route(bundle.made.build(), request, nullptr).error().message,
              HasSubstr("expected arms that may be chosen, found \"fast\""));
}

TEST(Routing, FindingsGiveThePolicyThatTheirRowsGive) {
  for (const double share : {0.7, 1.0, 1.3}) {
    RoutedBundle bundle(two_routed_arms(share));
    bundle.made.lose(bundle.cell("fast", 80), 3, RowStatus::kCrash, "SIGSEGV");
    const Bundle made = bundle.made.build();
    const auto findings = analyze(made, {}, nullptr);
    ASSERT_TRUE(findings) << findings.error().message;
    const Samples samples = *group_rows(made, findings->study.arms);
    const Route of_findings = route_of_findings(made, samples, *findings);
    const Route of_rows = bundle.route();
    EXPECT_TRUE(of_findings.policy == of_rows.policy) << share;
    EXPECT_EQ(of_findings.barred.size(), of_rows.barred.size());
    EXPECT_EQ(of_findings.failures(), of_rows.failures());
    EXPECT_FALSE(of_findings.validation);
  }
}

TEST(Routing, AnotherVersionOfTheFrameworkIsAnotherIdentity) {
  const auto under = [](const char* version) {
    Bundle made = RoutedBundle(two_routed_arms(0.7)).made.build();
    for (Row& row : made.rows) row.backend = "torch";
    for (auto& [cell, evidence] : made.evidence) {
      evidence.reported.emplace().whole["toolchain"] = {{"name", "torch"}, {"version", version}};
    }
    return made;
  };
  const RouteRequest request{.analysis = {}, .policy = judge_route(under("2.8.0"), {}, {})->policy};
  EXPECT_TRUE(judge_route(under("2.8.0"), request, nullptr));
  EXPECT_THAT(judge_route(under("2.9.1"), request, nullptr).error().message,
              HasSubstr("framework_build.torch: expected \"2.8.0\", found \"2.9.1\""));
}

TEST(Routing, OtherThreadsLibrariesVariablesAndHostsAreOtherIdentities) {
  const auto under = [](const char* pointer, const Json& value) {
    Bundle made = RoutedBundle(two_routed_arms(0.7)).made.build();
    made.environment = Json::parse(R"({"threads": 2, "environment_variables": {"OMP": "2"},
      "libraries": [{"name": "libm.so.6", "version": "2.36", "sha256": "ab"}],
      "host": {"cpu": {"governor": "performance"}}})");
    if (pointer != nullptr) made.environment[Json::json_pointer(pointer)] = value;
    return made;
  };
  const RouteRequest request{.analysis = {},
                             .policy = judge_route(under(nullptr, {}), {}, {})->policy};
  EXPECT_TRUE(judge_route(under(nullptr, {}), request, nullptr));
  for (const auto& [pointer, value, told] :
       {std::tuple<const char*, Json, const char*>{"/threads", 4, "threads: expected \"2\""},
        {"/environment_variables/OMP", "3", "environment_variables.OMP: expected \"2\""},
        {"/libraries/0/version", "2.37", "libraries.libm.so.6: expected \"2.36 ab\""},
        {"/host/cpu/governor", "powersave", "host.cpu governor: expected \"performance\""}}) {
    EXPECT_THAT(judge_route(under(pointer, value), request, nullptr).error().message,
                HasSubstr(told));
  }
}

TEST(MergedRuns, ProcessesOfEachRunCountOn) {
  std::vector<Bundle> runs;
  for (const uint64_t seed : {1, 2, 3}) {
    RoutedStudy study = two_routed_arms(0.7);
    study.seed = seed;
    runs.push_back(RoutedBundle(study).made.build());
  }
  const size_t rows = runs[0].rows.size();
  const auto merged = merge_runs(std::move(runs));
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->rows.size(), 3 * rows);
  std::set<int64_t> processes;
  std::set<std::pair<std::string, int64_t>> repetitions;
  for (const Row& row : merged->rows) {
    processes.insert(*row.process);
    if (row.repetition >= 0) {
      EXPECT_TRUE(repetitions.emplace(row.cell_id, row.repetition).second);
    }
  }
  EXPECT_EQ(processes.size(), 24u);
  const auto route = judge_route(*merged, {}, nullptr);
  EXPECT_EQ(rule_at(*route, 30).arm, "fast");
  EXPECT_EQ(rule_at(*route, 30).evidence[0].rows, 120);
}

TEST(MergedRuns, TheWeakerProofCounts) {
  std::vector<Bundle> runs;
  for (const char* verdict : {"yes", "label_only", "yes"}) {
    RoutedBundle bundle(two_routed_arms(0.7));
    bundle.made.evidence(bundle.cell("fast", 30))["compiler_real"] = verdict;
    runs.push_back(bundle.made.build());
  }
  runs[2].parity.begin()->second["passed"] = false;  // the first cell's is eager's at 10 tokens
  const Bundle merged = *merge_runs(std::move(runs));
  const auto route = judge_route(merged, {}, nullptr);
  EXPECT_EQ(rule_at(*route, 30).arm, "eager");
  EXPECT_EQ(rule_at(*route, 10).arm, "");
  EXPECT_EQ(rule_at(*route, 80).arm, "fast");
}

TEST(MergedRuns, EvidenceNamesTheProcessesOfTheRows) {
  std::vector<Bundle> runs;
  std::string cell;
  for (const char* verdict : {"yes", "fallback"}) {
    RoutedBundle bundle(two_routed_arms(0.7));
    cell = bundle.cell("fast", 30);
    bundle.made.evidence(cell)["processes"] = {{{"process", 0}, {"compiler_real", verdict}}};
    runs.push_back(bundle.made.build());
  }
  const Bundle merged = *merge_runs(std::move(runs));
  const Evidence& evidence = merged.evidence.at(cell);
  int64_t second = 0;  // the first process of the second run
  for (const Row& row : merged.rows) {
    if (row.cell_id == cell && row.repetition >= 0) second = std::max(second, *row.process);
  }
  second = (second + 1) / 2;
  EXPECT_EQ(evidence.verdict_of(0), CompilerReal::kYes);
  EXPECT_EQ(evidence.verdict_of(second), CompilerReal::kFallback);
}

TEST(MergedRuns, AnotherStudyOrIdentityIsRefused) {
  const auto merged_with = [](const std::function<void(Bundle&)>& change) {
    std::vector<Bundle> runs = {RoutedBundle(two_routed_arms(0.7)).made.build(),
                                RoutedBundle(two_routed_arms(0.7)).made.build()};
    runs[1].folder = "second";
    change(runs[1]);
    const auto merged = merge_runs(std::move(runs));
    return merged ? std::string() : merged.error().message;
  };
  EXPECT_EQ(merged_with([](Bundle&) {}), "");
  EXPECT_THAT(merged_with([](Bundle& b) { b.manifest["identity"]["code_sha"] = "def"; }),
              HasSubstr("another code_sha (expected \"abc\", found \"def\")"));
  EXPECT_THAT(merged_with([](Bundle& b) { b.manifest["study"]["name"] = "other"; }),
              HasSubstr("another study (\"other\" beside \"synthetic\")"));
  EXPECT_THAT(merged_with([](Bundle& b) { b.manifest["study"]["baseline"] = "fast"; }),
              HasSubstr("another baseline"));
  EXPECT_THAT(merged_with([](Bundle& b) { b.rows.clear(); }), HasSubstr("expected rows"));
}

}  // namespace
}  // namespace assay
