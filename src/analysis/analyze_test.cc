// Contrasts, comparability, outcomes and decisions on bundles made by code.
#include "analysis/analyze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"
#include "stats/samples/reference_samples.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Findings analyzed(SyntheticBundle& bundle) {
  AnalysisOptions options;
  options.resamples = 2000;
  return *analyze(bundle.build(), options, nullptr);
}

const Contrast& only(const std::vector<Contrast>& contrasts) {
  EXPECT_EQ(contrasts.size(), 1u);
  return contrasts.at(0);
}

TEST(Analyze, FindsAPlantedFivePercent) {
  SyntheticBundle bundle(1);
  bundle.add({.arm = "eager"});
  bundle.add({.arm = "static", .mean_ms = 10.5});
  const Findings findings = analyzed(bundle);
  const Contrast& contrast = only(findings.contrasts);
  EXPECT_EQ(contrast.verdict, Verdict::kSlower);
  EXPECT_NEAR(contrast.ratio, 1.05, 0.02);
  EXPECT_TRUE(contrast.ratio_interval->contains(1.05));
  EXPECT_GT(*contrast.cohen_d, 0);
  EXPECT_GT(*contrast.vargha_delaney_a, 0.5);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kBest);
  EXPECT_EQ(findings.decisions.at(0).arm, "eager");
  EXPECT_NEAR(findings.decisions.at(0).runner_up->ratio, 1 / contrast.ratio, 1e-12);
}

// Eager decode in moods of a busy host against captured decode, which has none (of an H200, ms).
TEST(Analyze, TellsTenTimesTheTimeFromMoods) {
  SyntheticBundle bundle(1);
  const std::string eager = bundle.add({.arm = "eager", .repetitions = 10});
  for (int i = 0; i < 10; ++i) bundle.row(eager, i).latency_ms = stats::kMoodyMs[i];
  for (int arm = 0; arm < 6; ++arm) {
    bundle.add({.arm = fmt::format("captured{}", arm),
                .mean_ms = 156,
                .noise = 0.0005,
                .repetitions = 10});
  }
  const Findings findings = analyzed(bundle);
  EXPECT_EQ(findings.contrasts.size(), 6u);
  for (const auto* contrasts : {&findings.contrasts, &findings.combined}) {
    for (const Contrast& contrast : *contrasts) {
      EXPECT_GT(contrast.widening.error, 2) << "alike neighbours don't show";
      EXPECT_EQ(contrast.verdict, Verdict::kFaster) << *contrast.p_holm;
    }
  }
}

// Neighbours that are alike: a pair of arms has one error, in the contrast and in the decision.
TEST(Analyze, DecidesByTheContrastsOwnWidening) {
  SyntheticBundle bundle(4);
  for (int stratum = 0; stratum < 5; ++stratum) {
    for (const auto& [arm, mean_ms] : {std::pair{"eager", 10.0}, {"static", 9.0}, {"third", 20}}) {
      bundle.add({.arm = arm,
                  .scenario = fmt::format("s{}", stratum),
                  .mean_ms = mean_ms,
                  .noise = 0.01,
                  .repetitions = 10,
                  .autocorrelation = 0.6});
    }
  }
  const Findings findings = analyzed(bundle);
  int held = 0;
  for (const Contrast& contrast : findings.contrasts) {
    if (contrast.arm != "static") continue;
    const Decision& decision = findings.decisions.at(*contrast.stratum);
    ASSERT_TRUE(decision.runner_up);
    EXPECT_EQ(decision.runner_up->arm, "eager");
    EXPECT_GT(contrast.widening.error, 1.2);
    EXPECT_EQ(decision.runner_up->ratio_interval->low, contrast.ratio_interval->low);
    EXPECT_EQ(decision.runner_up->ratio_interval->high, contrast.ratio_interval->high);
    ++held;
  }
  EXPECT_EQ(held, 5);
}

TEST(Analyze, CallsArmsOfOneSpeedEquivalentOnlyWhenTheDataShowIt) {
  SyntheticBundle precise(2);
  precise.add({.arm = "eager", .noise = 0.01});
  precise.add({.arm = "static", .noise = 0.01});
  EXPECT_EQ(only(analyzed(precise).contrasts).verdict, Verdict::kEquivalent);
  SyntheticBundle noisy(2);
  noisy.add({.arm = "eager", .noise = 0.3});
  noisy.add({.arm = "static", .noise = 0.3});
  const Findings findings = analyzed(noisy);
  EXPECT_EQ(only(findings.contrasts).verdict, Verdict::kInconclusive);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kUndecided);
}

TEST(Analyze, CombinesStrataOfOnePhaseByTheGeometricMeanOfRatios) {
  SyntheticBundle bundle(3);
  const double base[] = {1, 100};  // pooled milliseconds would see the long prompt alone
  for (const double mean : base) {
    const std::string scenario = mean == 1 ? "single_micro" : "single_long";
    bundle.add({.arm = "eager", .scenario = scenario, .mean_ms = mean, .noise = 0.01});
    bundle.add(
        {.arm = "static", .scenario = scenario, .mean_ms = mean == 1 ? 0.5 : 200, .noise = 0.01});
  }
  const Findings findings = analyzed(bundle);
  const Contrast& all = only(findings.combined);
  EXPECT_EQ(all.strata, 2);
  EXPECT_NEAR(all.ratio, 1, 0.01);
  EXPECT_EQ(all.verdict, Verdict::kEquivalent);
  EXPECT_EQ(all.stratum_verdicts.at(Verdict::kFaster), 1);
  EXPECT_EQ(all.stratum_verdicts.at(Verdict::kSlower), 1);
}

TEST(Analyze, NeverCombinesPhases) {
  SyntheticBundle bundle(4);
  for (const Phase phase : kPhases) {
    bundle.add({.arm = "eager", .phase = phase});
    bundle.add({.arm = "static", .phase = phase});
  }
  const Findings findings = analyzed(bundle);
  ASSERT_EQ(findings.combined.size(), std::size(kPhases));
  for (const Contrast& combined : findings.combined) EXPECT_EQ(combined.strata, 1);
}

TEST(Analyze, ACrashRatesIntervalTakesAProcessThatDiedForOne) {
  const auto interval_of = [](bool whole_process) {
    SyntheticBundle bundle(41);
    bundle.add({.arm = "eager", .processes = 5});
    const std::string cell = bundle.add({.arm = "static", .processes = 5});
    for (int64_t i = 0; i < 6; ++i) {
      bundle.lose(cell, whole_process ? 6 + i : 5 * i, RowStatus::kCrash, "SIGSEGV");
    }
    const auto findings = analyze(bundle.build(), {.resamples = 200}, nullptr);
    for (const OutcomeCounts& outcome : findings->outcomes) {
      if (outcome.arm == "static") return std::pair(outcome.failed, *outcome.failed_interval);
    }
    return std::pair(int64_t{0}, stats::Interval{});
  };
  const auto [by_process, wide] = interval_of(true);
  const auto [by_row, narrow] = interval_of(false);
  EXPECT_EQ(by_process, by_row);
  EXPECT_DOUBLE_EQ(wide.high, stats::wilson_interval(1, 5)->high);
  EXPECT_DOUBLE_EQ(narrow.high, stats::wilson_interval(6, 30)->high);
}

TEST(Analyze, ReportsCrashRatesInsteadOfTheSurvivorsSpeed) {
  SyntheticBundle bundle(5);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add({.arm = "static", .mean_ms = 0.02});
  for (int i = 6; i < 30; ++i) bundle.lose(cell, i, RowStatus::kCrash, "SIGSEGV");
  const Findings findings = analyzed(bundle);
  EXPECT_THAT(findings.contrasts, IsEmpty());
  EXPECT_THAT(findings.combined, IsEmpty());
  ASSERT_EQ(findings.not_comparable.size(), 1u);
  EXPECT_THAT(findings.not_comparable[0].reasons, ElementsAre("static: lost 24 of 30 rows"));
  const auto& outcomes = findings.outcomes;
  ASSERT_EQ(outcomes.size(), 4u);  // two arms of the phase, then of the stratum
  EXPECT_EQ(outcomes[1].arm, "static");
  EXPECT_EQ(outcomes[1].failed, 24);
  EXPECT_NEAR(outcomes[1].failed_interval->low, 0.6269, 1e-4);
  EXPECT_EQ(outcomes[1].by_error_class.at("SIGSEGV"), 24);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kOnlyOne);
  EXPECT_EQ(findings.decisions.at(0).left_out.at(0).arm, "static");
  EXPECT_EQ(findings.decisions.at(0).left_out.at(0).reason, "lost 24 of 30 rows");
}

TEST(Analyze, LeavesAnArmThatFailedParityOutOfContrastsAndMarksIt) {
  SyntheticBundle bundle(6);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add({.arm = "static", .mean_ms = 5});
  bundle.raw().parity[cell] = {{"passed", false}};
  const Findings findings = analyzed(bundle);
  EXPECT_THAT(findings.contrasts, IsEmpty());
  EXPECT_THAT(findings.not_comparable.at(0).reasons, ElementsAre("static: parity failed"));
  EXPECT_TRUE(findings.latencies.at(1).parity_failed);
  EXPECT_TRUE(findings.latencies.at(1).mean);
  EXPECT_EQ(findings.decisions.at(0).arm, "eager");
}

TEST(Analyze, ListsStrataThatAreNotPaired) {
  SyntheticBundle bundle(7);
  bundle.add({.arm = "eager"});
  bundle.add({.arm = "static", .scenario = "single_long"});
  bundle.add({.arm = "eager", .scenario = "single_short", .repetitions = 4});
  bundle.add({.arm = "static", .scenario = "single_short"});
  bundle.add({.arm = "eager", .scenario = "stress_single", .prompt_tokens = 400});
  bundle.add({.arm = "static", .scenario = "stress_single", .prompt_tokens = 390});
  const Findings findings = analyzed(bundle);
  EXPECT_THAT(findings.contrasts, IsEmpty());
  std::string reasons;
  for (const auto& entry : findings.not_comparable) reasons += entry.reasons.at(0);
  EXPECT_THAT(reasons, HasSubstr("this arm was not measured here"));
  EXPECT_THAT(reasons, HasSubstr("the baseline was not measured here"));
  EXPECT_THAT(reasons, HasSubstr("eager: 4 warm ok rows, needs 5"));
  EXPECT_THAT(reasons, HasSubstr("different prompts"));
}

TEST(Analyze, KeepsColdSamplesOutOfTheLatency) {
  SyntheticBundle bundle(8);
  bundle.add({.arm = "eager", .noise = 0.01, .warmup = 3, .cold_factor = 10});
  const Findings findings = analyzed(bundle);
  const Latency& latency = findings.latencies.at(0);
  EXPECT_EQ(latency.n, 30);
  EXPECT_EQ(latency.cold_n, 3);
  EXPECT_NEAR(*latency.mean, 10, 0.1);
  EXPECT_NEAR(*latency.cold_median, 100, 3);
  EXPECT_GT(*latency.mean_with_cold, 17);
  EXPECT_NEAR(*latency.tokens_per_s, 1000 / *latency.mean, 1e-9);
  EXPECT_EQ(findings.outcomes.at(0).attempted, 33);
}

TEST(Analyze, LeavesOutPercentilesThatTheSampleIsTooSmallFor) {
  SyntheticBundle bundle(9);
  bundle.add({.arm = "eager", .repetitions = 30});
  bundle.add({.arm = "static", .repetitions = 9});
  const Findings findings = analyzed(bundle);
  EXPECT_TRUE(findings.latencies.at(0).p95);
  EXPECT_FALSE(findings.latencies.at(0).p99);
  EXPECT_FALSE(findings.latencies.at(1).p90);
  EXPECT_TRUE(findings_to_json(findings)["latencies"][1]["p90_ms"].is_null());
}

// The range of the processes' own figures stands where their interval would have one or two degrees
// of freedom; a verdict needs it beside the test.
TEST(Analyze, FewerThanFourProcessesHaveARangeInThePlaceOfAnInterval) {
  for (const int64_t processes : {2, 3, 4}) {
    SyntheticBundle bundle(12);
    for (const char* scenario : {"a", "b"}) {
      for (const auto& [arm, ms] : {std::pair{"eager", 10.0}, {"static", 5.0}}) {
        bundle.add({.arm = arm,
                    .scenario = scenario,
                    .mean_ms = ms,
                    .processes = processes,
                    .process_shift = 0.001});
      }
    }
    const Findings findings = analyzed(bundle);
    const bool few = processes < 4;
    for (const Latency& latency : findings.latencies) {
      EXPECT_EQ(latency.mean_interval.has_value(), !few);
      ASSERT_EQ(latency.mean_process_range.has_value(), few);
      if (!few) continue;
      EXPECT_TRUE(latency.mean_process_range->contains(*latency.mean));
    }
    std::vector<Contrast> contrasts = findings.contrasts;
    contrasts.insert(contrasts.end(), findings.combined.begin(), findings.combined.end());
    ASSERT_EQ(contrasts.size(), 3u);
    for (const Contrast& contrast : contrasts) {
      EXPECT_EQ(contrast.verdict, Verdict::kFaster);
      EXPECT_EQ(contrast.ratio_interval.has_value(), !few);
      ASSERT_EQ(contrast.ratio_process_range.has_value(), few);
      if (!few) continue;
      EXPECT_TRUE(contrast.ratio_process_range->contains(contrast.ratio));
    }
    const std::optional<Rival>& next = findings.decisions.front().runner_up;
    ASSERT_TRUE(next);
    EXPECT_EQ(next->ratio_interval.has_value(), !few);
    EXPECT_EQ(next->ratio_process_range.has_value(), few);
  }
}

TEST(Analyze, IgnoresAnArmThatTheStudyAddsForTheOthersIntervals) {
  const auto interval_of_eager = [](bool third) {
    SyntheticBundle bundle(10);
    bundle.add({.arm = "eager"});
    bundle.add({.arm = "static"});
    if (third) bundle.add({.arm = "another"});
    return *analyzed(bundle).latencies.at(0).mean_interval;
  };
  EXPECT_EQ(interval_of_eager(false), interval_of_eager(true));
}

TEST(Analyze, GivesTheSameFindingsOnAnyNumberOfThreads) {
  SyntheticBundle bundle(11);
  bundle.add({.arm = "eager", .spike_rate = 0.1, .warmup = 3});
  bundle.add({.arm = "static", .spike_rate = 0.1, .warmup = 3});
  ThreadPool pool(3);
  const Bundle built = bundle.build();
  EXPECT_EQ(findings_to_json(*analyze(built, {}, nullptr)),
            findings_to_json(*analyze(built, {}, &pool)));
}

TEST(Analyze, OrdersStrataByPromptLengthAndArmsByTheStudy) {
  SyntheticBundle bundle(12);
  bundle.add({.arm = "static", .scenario = "single_long", .prompt_tokens = 200});
  bundle.add({.arm = "eager", .scenario = "single_long", .prompt_tokens = 200});
  bundle.add({.arm = "eager", .scenario = "single_micro", .prompt_tokens = 10});
  bundle.add({.arm = "static", .scenario = "single_micro", .prompt_tokens = 10});
  const Findings findings = analyzed(bundle);
  EXPECT_EQ(findings.strata.at(0).scenario, "single_micro");
  EXPECT_EQ(findings.latencies.at(0).arm, "eager");
  EXPECT_EQ(findings.study.baseline, "eager");
}

TEST(Analyze, SurvivesABundleWithoutRowsOrStudy) {
  Bundle bundle;
  bundle.manifest = Json::object();
  bundle.environment = Json::object();
  const auto findings = analyze(bundle, {}, nullptr);
  ASSERT_TRUE(findings);
  EXPECT_EQ(findings->named.at(0).kind, "incomplete");
  EXPECT_EQ(findings->named.at(1).kind, "no_rows");
}

TEST(Analyze, RefusesAParityRecordWithoutAVerdict) {
  SyntheticBundle bundle(13);
  const auto cell = bundle.add({.arm = "eager"});
  bundle.raw().parity[cell] = {{"passed", "yes"}};
  const auto findings = analyze(bundle.build(), {}, nullptr);
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(findings.error().message, HasSubstr("parity.json"));
}

// An arm of no spread beside one of some: the error is the other's.
TEST(Analyze, AConstantArmIsDecidedByTheOthersSpread) {
  for (const bool constant_baseline : {false, true}) {
    SyntheticBundle bundle(14);
    bundle.add({.arm = "eager", .noise = constant_baseline ? 0 : 0.01});
    bundle.add({.arm = "static", .mean_ms = 8, .noise = constant_baseline ? 0.01 : 0});
    const Findings findings = analyzed(bundle);
    const Contrast& contrast = only(findings.contrasts);
    EXPECT_LT(*contrast.p_holm, 1e-20);
    ASSERT_TRUE(contrast.ratio_interval);
    EXPECT_TRUE(contrast.ratio_interval->contains(0.8));
    EXPECT_LT(contrast.ratio_interval->low, contrast.ratio_interval->high);
    EXPECT_EQ(contrast.verdict, Verdict::kFaster);
    EXPECT_EQ(only(findings.combined).verdict, Verdict::kFaster);
    EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kBest);
    EXPECT_EQ(findings.decisions.at(0).arm, "static");
  }
}

Findings of_constants(double static_ms, int64_t rows = 30) {
  SyntheticBundle bundle(14);
  for (const char* scenario : {"single_micro", "single_long"}) {
    bundle.add({.arm = "eager", .scenario = scenario, .noise = 0, .repetitions = rows});
    bundle.add({.arm = "static",
                .scenario = scenario,
                .mean_ms = static_ms,
                .noise = 0,
                .repetitions = rows});
  }
  return analyzed(bundle);
}

// No error can be estimated: the chance that rows dealt at random part so decides.
TEST(Analyze, ConstantArmsAreDecidedByTheirRowsParting) {
  const Findings different = of_constants(8);
  const Contrast& contrast = different.contrasts.at(0);
  EXPECT_NEAR(contrast.test->log_p, std::log(2) - 39.3117, 1e-3);  // ln(60 choose 30)
  EXPECT_FALSE(contrast.cohen_d);
  EXPECT_EQ(contrast.ratio_interval->low, 0.8);
  EXPECT_EQ(contrast.verdict, Verdict::kFaster);
  EXPECT_EQ(different.combined.at(0).verdict, Verdict::kFaster);
  EXPECT_EQ(different.decisions.at(0).arm, "static");
  EXPECT_FALSE(different.latencies.at(0).mean_interval) << "of a mean whose error isn't known";
  const Findings same = of_constants(10);
  EXPECT_EQ(same.contrasts.at(0).verdict, Verdict::kEquivalent);
  EXPECT_EQ(same.combined.at(0).verdict, Verdict::kEquivalent);
  EXPECT_EQ(same.decisions.at(0).kind, Decision::Kind::kNoDifference);
}

TEST(Analyze, ConstantArmsThatDisagreeByStratumAreNotCombined) {
  SyntheticBundle bundle(15);
  for (const auto& [scenario, ms] : {std::pair{"single_micro", 8.0}, {"single_long", 12.5}}) {
    bundle.add({.arm = "eager", .scenario = scenario, .noise = 0});
    bundle.add({.arm = "static", .scenario = scenario, .mean_ms = ms, .noise = 0});
  }
  const Contrast combined = only(analyzed(bundle).combined);
  EXPECT_FALSE(combined.test);
  EXPECT_EQ(combined.stratum_verdicts.at(Verdict::kFaster), 1);
  EXPECT_EQ(combined.stratum_verdicts.at(Verdict::kSlower), 1);
}

// One of five strata survived, on which the arm is faster.
TEST(Analyze, CombinedFiguresOfSurvivingStrataAreNoVerdict) {
  SyntheticBundle bundle(16);
  std::string lost;
  for (int i = 0; i < 5; ++i) {
    const std::string scenario = fmt::format("s{}", i);
    bundle.add({.arm = "eager", .scenario = scenario});
    lost = bundle.add({.arm = "static", .scenario = scenario, .mean_ms = 8});
    for (int row = 0; i > 0 && row < 30; ++row) {
      bundle.lose(lost, row, RowStatus::kCrash, "SIGSEGV");
    }
  }
  const Findings findings = analyzed(bundle);
  const Contrast& combined = only(findings.combined);
  EXPECT_EQ(combined.strata, 1);
  EXPECT_EQ(combined.lost_strata, 4);
  const Json json = findings_to_json(findings)["combined"][0];
  EXPECT_TRUE(json["verdict"].is_null()) << json["verdict"];
  EXPECT_EQ(json["lost_strata"], 4);
  EXPECT_EQ(only(findings.contrasts).verdict, Verdict::kFaster) << "of the stratum it is one";
  const auto survivorship = std::ranges::find(findings.named, "survivorship", &Finding::kind);
  ASSERT_NE(survivorship, findings.named.end());
  EXPECT_FALSE(survivorship->stratum);
  EXPECT_EQ(survivorship->arm, "static");
  EXPECT_THAT(survivorship->text, HasSubstr("the combined figures cover 1 of 5 strata"));
  EXPECT_EQ(survivorship->rows.at(lost).size(), 30u);
}

TEST(Analyze, ARunWithoutLossesHasACombinedVerdict) {
  SyntheticBundle bundle(17);
  bundle.add({.arm = "eager"});
  bundle.add({.arm = "static", .mean_ms = 8});
  bundle.add({.arm = "static", .scenario = "alone"});  // unpaired by the study, not by a crash
  const Findings findings = analyzed(bundle);
  EXPECT_EQ(only(findings.combined).lost_strata, 0);
  EXPECT_EQ(findings_to_json(findings)["combined"][0]["verdict"], "faster");
}

TEST(Analyze, ADecisionThatRestsOnAVoidComparisonIsNotGiven) {
  SyntheticBundle bundle(18);
  bundle.raw().manifest["study"]["order"] = "sequential";
  bundle.add({.arm = "eager", .noise = 0.01, .drift = 0.1});
  bundle.add({.arm = "static", .mean_ms = 9, .noise = 0.01, .drift = 0.1});
  bundle.add({.arm = "eager", .scenario = "alone"});
  const Findings findings = analyzed(bundle);
  for (const Decision& decision : findings.decisions) {
    if (findings.strata[decision.stratum].scenario == "alone") {
      EXPECT_EQ(decision.kind, Decision::Kind::kOnlyOne);
      continue;
    }
    EXPECT_EQ(decision.kind, Decision::Kind::kVoid);
    EXPECT_THAT(decision.void_because, HasSubstr("order_confounded"));
    EXPECT_EQ(decision.arm, "");
    EXPECT_FALSE(decision.runner_up);
    EXPECT_THAT(decision.alternatives, IsEmpty());
  }
}

}  // namespace
}  // namespace assay
