// The findings about compilation: each on a bundle with its defect, on one without, and on noise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/describe/tails.h"
#include "analysis/named/named.h"
#include "analysis/of_kind.h"
#include "analysis/rows/synthetic_bundle.h"
#include "artifact/parity_cost.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kKinds = {"recompile_tail",    "tail_collapse", "no_recompile_tail",
                                         "recompile_limit",   "fallback",      "label_only",
                                         "unproven_compiler", "stable_compile"};

Findings briefly_analyzed(SyntheticBundle& bundle) {
  AnalysisOptions options;
  options.resamples = 300;
  return *analyze(bundle.build(), options, nullptr);
}

// The kinds about compilation that an arm got.
std::vector<std::string> kinds_of(const Findings& findings, const std::string& arm) {
  std::vector<std::string> kinds;
  for (const Finding& finding : findings.named) {
    if (finding.arm == arm && std::ranges::find(kKinds, finding.kind) != kKinds.end()) {
      kinds.push_back(finding.kind);
    }
  }
  return kinds;
}

// A study of prompts of 8 lengths: eager, compiled for each length, compiled for any.
struct Churn {
  explicit Churn(double noise = 0.02, double spike_rate = 0) : bundle(17) {
    bundle.raw().manifest["study"]["arms"] = {"eager", "each", "any"};
    SyntheticCell cell{
        .arm = "eager", .noise = noise, .spike_rate = spike_rate, .repetitions = 120, .warmup = 3};
    eager = bundle.add(cell);
    cell.arm = "each";
    cell.mean_ms = 6;
    each = bundle.add_compiled(cell, "false");
    cell.arm = "any";
    cell.mean_ms = 7;
    any = bundle.add_compiled(cell, "true");
    for (const std::string& id : {eager, each, any}) {
      for (int i = -3; i < 120; ++i) bundle.set_length(id, i, 16 + 8 * ((i + 3) % 8));
    }
    // The warm-ups compile three of the lengths, the timed rows the rest.
    for (int i = -3; i < 5; ++i) bundle.compile(each, i, i < 0 ? 0 : 400 + i);
    bundle.compile(any, -3, 400);
  }
  SyntheticBundle bundle;
  std::string eager, each, any;
};

TEST(NamedCompiled, ATailIsAttributedToTheRecompilesThatMakeIt) {
  Churn churn;
  const Findings findings = briefly_analyzed(churn.bundle);
  const auto tails = of_kind(findings, "recompile_tail");
  ASSERT_EQ(tails.size(), 1u);
  EXPECT_EQ(tails[0].arm, "each");
  EXPECT_EQ(tails[0].severity, Severity::kWarning);
  EXPECT_THAT(tails[0].text, HasSubstr("5 of the 5 samples slower than 3 times the median"));
  EXPECT_THAT(tails[0].text, HasSubstr("p99 would be 6."));
  EXPECT_THAT(tails[0].text, HasSubstr("at 72 tokens (guard q_len: expected 64, found 72)"));
  EXPECT_EQ(tails[0].rows.at(churn.each).size(), 5u);
}

TEST(NamedCompiled, TheShareOfTheSamplesBeyondTheFenceThatRecompiledIsGiven) {
  Churn churn;
  EXPECT_EQ(of_kind(briefly_analyzed(churn.bundle), "tail_attribution").size(), 1u);
  for (const int i : {50, 60, 70}) churn.bundle.row(churn.each, i).latency_ms = 30;
  const Findings findings = briefly_analyzed(churn.bundle);
  const auto found = of_kind(findings, "tail_attribution");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "each");
  const Tail& tail = *std::ranges::find(findings.tails, "each", &Tail::arm);
  EXPECT_EQ(tail.beyond_fence_recompiled, 5);
  EXPECT_GE(tail.beyond_fence, 8);
  EXPECT_THAT(found[0].text, HasSubstr(fmt::format("5 of the {} samples", tail.beyond_fence)));
  EXPECT_THAT(found[0].rows.at(churn.each), ElementsAre(0, 1, 2, 3, 4));
  for (int i = 0; i < 5; ++i) {
    Row& row = churn.bundle.row(churn.each, i);
    row.counts[Counter::kUniqueGraphs] = row.counts[Counter::kRecompiles] = 0;
  }
  EXPECT_TRUE(of_kind(briefly_analyzed(churn.bundle), "tail_attribution").empty());
}

TEST(NamedCompiled, ArmsWithoutTheTailAreSetBesideTheOneThatHasIt) {
  Churn churn;
  const Findings findings = briefly_analyzed(churn.bundle);
  const auto collapsed = of_kind(findings, "tail_collapse");
  ASSERT_EQ(collapsed.size(), 2u);
  EXPECT_EQ(collapsed[0].arm, "eager");
  EXPECT_EQ(collapsed[1].arm, "any");
  EXPECT_THAT(collapsed[1].text, HasSubstr("dynamic true"));
  EXPECT_THAT(collapsed[1].text, HasSubstr("its p50 is 1.1"));
  EXPECT_TRUE(of_kind(findings, "no_recompile_tail").empty());
  EXPECT_THAT(kinds_of(findings, "any"), ElementsAre("stable_compile", "tail_collapse"));
}

TEST(NamedCompiled, LengthsThatArePaddedToOneAreSaidToDoWithout) {
  SyntheticBundle bundle(18);
  bundle.add({.arm = "eager", .repetitions = 40});
  const auto cell = bundle.add_compiled({.arm = "static", .repetitions = 40, .warmup = 1}, "false");
  for (int i = -1; i < 40; ++i) {
    bundle.row(cell, i).prompt_tokens = 10 + (i + 4) % 4;
    bundle.row(cell, i).padded_tokens = 16;
  }
  bundle.compile(cell, -1, 300);
  const Findings findings = briefly_analyzed(bundle);
  EXPECT_THAT(kinds_of(findings, "static"), ElementsAre("stable_compile", "no_recompile_tail"));
  EXPECT_THAT(
      of_kind(findings, "no_recompile_tail")[0].text,
      HasSubstr("prompts have 10 to 13 tokens (4 lengths padded to 1 at 1.39 times the tokens, "
                "dynamic false), and 0 of 40 samples carry a recompile: max"));
}

TEST(NamedCompiled, ATailOfAnotherCauseIsNotTheRecompiles) {
  Churn churn;
  for (int i = 60; i < 70; ++i) churn.bundle.row(churn.each, i).latency_ms = 900;
  EXPECT_TRUE(of_kind(briefly_analyzed(churn.bundle), "recompile_tail").empty());
}

TEST(NamedCompiled, RowsThatCompileAreNoDrift) {
  Churn churn;
  for (int i = 0; i < 110; ++i) {  // so early and so often that they are the trend
    if (i % 2 == 0) churn.bundle.compile(churn.each, i, 900 - i);
  }
  EXPECT_TRUE(of_kind(briefly_analyzed(churn.bundle), "drift").empty());
}

TEST(NamedCompiled, ACheapRecompileIsNoTail) {
  Churn churn;
  for (int i = 0; i < 5; ++i) churn.bundle.row(churn.each, i).latency_ms = 12;
  const Findings findings = briefly_analyzed(churn.bundle);
  EXPECT_TRUE(of_kind(findings, "recompile_tail").empty());
  EXPECT_TRUE(of_kind(findings, "tail_collapse").empty());
}

TEST(NamedCompiled, TheLimitSplitsTheRowsBeforeFromThoseAfter) {
  Churn churn;
  for (int i = 20; i < 120; ++i) {
    churn.bundle.row(churn.each, i).counts[Counter::kFallbacks] = 1;
    *churn.bundle.row(churn.each, i).latency_ms *= 10.0 / 6;
  }
  churn.bundle.reported(churn.each)["counters"]["recompile_limit_hits"] = 1;
  churn.bundle.evidence(churn.each)["compiler_real"] = "fallback";
  const Findings findings = briefly_analyzed(churn.bundle);
  const auto limit = of_kind(findings, "recompile_limit");
  ASSERT_EQ(limit.size(), 1u);
  EXPECT_THAT(limit[0].text,
              HasSubstr("(guard q_len failed 7 times): calls ran eager from repetition 20 on"));
  EXPECT_NEAR(limit[0].size, 10.0 / 6, 0.05);
  EXPECT_EQ(limit[0].rows.at(churn.each).size(), 100u);
  const auto fallback = of_kind(findings, "fallback");
  ASSERT_EQ(fallback.size(), 1u);
  EXPECT_EQ(
      fallback[0].text,
      "calls to be compiled ran eager in 100 of 120 timed rows (1 a row): the recompile limit");
  EXPECT_EQ(findings.tails.at(1).execution, Execution::kPartly);
}

TEST(NamedCompiled, ALimitHitInTheWarmUpsLeavesNoTimedRowCompiled) {
  SyntheticBundle bundle(19);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static", .warmup = 2}, "false");
  bundle.compile(cell, -2, 900);
  for (int i = -2; i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks] = 50;
  bundle.reported(cell)["counters"]["recompile_limit_hits"] = 1;
  const Findings findings = briefly_analyzed(bundle);
  EXPECT_THAT(of_kind(findings, "recompile_limit").at(0).text,
              HasSubstr("in every timed row, because the warm-ups hit the limit; p50"));
  EXPECT_EQ(findings.tails.at(1).execution, Execution::kFellBack);
  EXPECT_EQ(findings.decisions.at(0).arm, "eager");
  EXPECT_EQ(findings.decisions.at(0).left_out.at(0).reason, "fell back");
}

// Rows without a counter ran as the evidence of their own process says.
TEST(NamedCompiled, UncountedRowsGoByTheirProcess) {
  SyntheticBundle bundle(21);
  bundle.add({.arm = "eager", .processes = 3});
  const auto cell = bundle.add_compiled({.arm = "static", .processes = 3}, "auto");
  for (int i = 0; i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks].reset();
  Json& evidence = bundle.evidence(cell);
  evidence["compiler_real"] = "fallback";
  for (const char* verdict : {"yes", "fallback", "yes"}) {
    evidence["processes"].push_back(
        {{"process", evidence["processes"].size()}, {"compiler_real", verdict}, {"lost", false}});
  }
  const Findings findings = briefly_analyzed(bundle);
  const Tail& tail = findings.tails.at(1);
  EXPECT_EQ(tail.execution, Execution::kPartly);
  EXPECT_EQ(tail.ran_eager, 10);
  const Finding fallback = of_kind(findings, "fallback").at(0);
  EXPECT_EQ(fallback.rows.at(cell).size(), 10u);
  EXPECT_EQ(fallback.text,
            "the arm requested compilation, but some of its calls ran eager: no evidence says why");
}

TEST(NamedCompiled, AFallbackNamesTheFirstLineOfItsErrorAndWhereTheRestIs) {
  SyntheticBundle bundle(20);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static"}, "auto");
  for (int i = 0; i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks] = 1;
  bundle.reported(cell)["fallback_error"] = "c++: exit 1\nkernel.cc:3: error: expected ';'";
  bundle.evidence(cell)["compiler_real"] = "fallback";
  const Findings findings = briefly_analyzed(bundle);
  EXPECT_THAT(kinds_of(findings, "static"), ElementsAre("fallback"));
  EXPECT_EQ(
      of_kind(findings, "fallback")[0].text,
      "calls to be compiled ran eager in 30 of 30 timed rows (1 a row): c++: exit 1 (see cells/" +
          cell + "/evidence.json)");
}

TEST(NamedCompiled, AFallbackOfOneOfARowsStepsIsNotToldAsTheWholeRows) {
  for (const auto& [phase, most, told] :
       {std::tuple{Phase::kKvDecode, 1, "(1 a row, of 8 steps)"},
        {Phase::kKvDecode, 3, "(1 to 3 a row, of 8 steps)"},
        {Phase::kE2eKv, 1, "(1 a row, of a prefill and 8 steps)"}}) {
    SyntheticBundle bundle(20);
    bundle.add({.arm = "eager", .phase = phase, .new_tokens = 8});
    const auto cell =
        bundle.add_compiled({.arm = "static", .phase = phase, .new_tokens = 8}, "auto");
    for (int i = 0; i < 30; ++i) {
      bundle.row(cell, i).counts[Counter::kFallbacks] = i % 2 == 0 ? 1 : most;
    }
    bundle.evidence(cell)["compiler_real"] = "fallback";
    const auto found = of_kind(briefly_analyzed(bundle), "fallback");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].text, HasSubstr("calls to be compiled ran eager in 30 of 30 timed rows"));
    EXPECT_THAT(found[0].text, HasSubstr(told));
  }
}

TEST(NamedCompiled, AFallbackThatNoRowCountsIsToldByTheEvidence) {
  SyntheticBundle bundle(20);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static"}, "auto");
  bundle.evidence(cell)["compiler_real"] = "fallback";
  bundle.reported(cell)["reasons"] = {"a warm-up fell back"};
  EXPECT_EQ(of_kind(briefly_analyzed(bundle), "fallback").at(0).text,
            "the arm requested compilation, but some of its calls ran eager: a warm-up fell back");
  for (int i = 0; i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks] = std::nullopt;
  EXPECT_EQ(of_kind(briefly_analyzed(bundle), "fallback").at(0).text,
            "the arm requested compilation, but its worker says that it ran eager: a warm-up fell "
            "back");
}

TEST(NamedCompiled, AModeThatRanAsALesserOneIsNamedAndCantWin) {
  SyntheticBundle bundle(20);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static", .mean_ms = 5}, "false");
  for (int i = 0; i < 30; ++i) bundle.row(cell, i).compile_mode = "reduce-overhead";
  bundle.evidence(cell)["compiler_real"] = "fallback";
  bundle.reported(cell)["fallback"] = "default";
  bundle.reported(cell)["reasons"] = {"no CUDA graph: the device is cpu"};
  const Findings findings = briefly_analyzed(bundle);
  EXPECT_EQ(findings.tails.at(1).execution, Execution::kOtherMode);
  EXPECT_THAT(kinds_of(findings, "static"), ElementsAre("fallback"));
  EXPECT_EQ(
      of_kind(findings, "fallback")[0].text,
      "the arm requested reduce-overhead and ran as default: no CUDA graph: the device is cpu");
  EXPECT_EQ(of_kind(findings, "fallback")[0].rows.at(cell).size(), 30u);
  EXPECT_EQ(findings.decisions.at(0).left_out.at(0).reason, "another mode");
}

TEST(NamedCompiled, TheWordCompiledIsEarnedByEvidence) {
  for (const auto& [verdict, kind, execution] :
       {std::tuple{"label_only", "label_only", Execution::kLabelOnly},
        {"unproven", "unproven_compiler", Execution::kUnproven}}) {
    SyntheticBundle bundle(21);
    bundle.add({.arm = "eager"});
    const auto cell = bundle.add_compiled({.arm = "static", .mean_ms = 5}, "false");
    bundle.evidence(cell)["compiler_real"] = verdict;
    bundle.reported(cell)["reasons"] = {"no kernel was loaded"};
    const Findings findings = briefly_analyzed(bundle);
    EXPECT_THAT(kinds_of(findings, "static"), ElementsAre(kind));
    EXPECT_THAT(of_kind(findings, kind)[0].text, HasSubstr("no kernel was loaded"));
    EXPECT_EQ(findings.tails.at(1).execution, execution);
    EXPECT_EQ(findings.decisions.at(0).arm, "eager") << "it can't win as compiled";
  }
  SyntheticBundle without(22);
  without.add({.arm = "eager"});
  without.drop_evidence(without.add_compiled({.arm = "static"}, "false"));
  EXPECT_THAT(kinds_of(briefly_analyzed(without), "static"), ElementsAre("unproven_compiler"));
}

TEST(NamedCompiled, ARecompileInATimedRowIsNotStable) {
  SyntheticBundle bundle(23);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static", .warmup = 1}, "false");
  bundle.compile(cell, -1, 400);
  EXPECT_THAT(
      of_kind(briefly_analyzed(bundle), "stable_compile").at(0).text,
      HasSubstr("compiled once, in the warm-ups, and it did not recompile in the 30 timed rows"));
  bundle.compile(cell, 7, 400);
  EXPECT_TRUE(of_kind(briefly_analyzed(bundle), "stable_compile").empty());
}

TEST(NamedCompiled, AFrameThatASplitArmLeavesEagerIsNotAsked) {
  SyntheticBundle bundle(24);
  bundle.add({.arm = "eager"});
  const auto cell = bundle.add_compiled({.arm = "static"}, "false");
  bundle.evidence(cell)["compiler_real"] = "not_applicable";
  const Findings findings = briefly_analyzed(bundle);
  EXPECT_TRUE(kinds_of(findings, "static").empty());
  EXPECT_TRUE(findings.tails.empty());
}

TEST(NamedCompiled, AnEagerBundleHasNoFindingAboutCompilation) {
  SyntheticBundle bundle(25);
  bundle.add({.arm = "eager", .spike_rate = 0.1, .repetitions = 120});
  bundle.add({.arm = "static", .spike_rate = 0.1, .repetitions = 120});
  const Findings findings = briefly_analyzed(bundle);
  for (const std::string& kind : kKinds) EXPECT_TRUE(of_kind(findings, kind).empty()) << kind;
  EXPECT_TRUE(findings.tails.empty());
}

// Noise as on a busy machine: 10 % of samples take 3 times as long or longer.
TEST(NamedCompiled, NoiseAloneIsNoRecompileTailAndHidesNone) {
  int false_alarms = 0;
  int found = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    SyntheticBundle bundle(trial + 100);
    SyntheticCell noisy{.arm = "eager", .noise = 0.3, .spike_rate = 0.1, .repetitions = 120};
    bundle.add(noisy);
    noisy.arm = "static";
    const auto cell = bundle.add_compiled(noisy, "false");
    bundle.compile(cell, 3, 25);  // a compilation that costs little more than a spike
    AnalysisOptions options;
    options.resamples = 20;
    false_alarms += of_kind(*analyze(bundle.build(), options, nullptr), "recompile_tail").size();
    for (int i = 20; i < 28; ++i) bundle.compile(cell, i, 500);
    found += of_kind(*analyze(bundle.build(), options, nullptr), "recompile_tail").size();
  }
  EXPECT_LE(false_alarms, 2);
  EXPECT_EQ(found, 200);
}

TEST(CompileCosts, AreAlsoThoseOfAnArmThatCapturesGraphsByHand) {
  SyntheticBundle bundle(6);
  const std::string eager = bundle.add({.arm = "eager"});
  const std::string cell = bundle.add({.arm = "static"});
  bundle.evidence(eager)["reported"]["counters"] = {{"cudagraph_captures", 0}};
  bundle.evidence(cell)["worker"]["prepare_seconds"] = 1.25;
  bundle.evidence(cell)["reported"]["counters"] = {{"cudagraph_captures", 1}};
  const Findings findings = *analyze(bundle.build(), {}, nullptr);
  ASSERT_EQ(findings.compile_costs.size(), 1u);
  EXPECT_EQ(findings.compile_costs[0].arm, "static");
  EXPECT_EQ(findings.compile_costs[0].prepare_s, 1.25);
}

TEST(CompileCosts, AreThoseOfTheFirstProcessAndApartThoseOfLaterOnes) {
  SyntheticBundle bundle(7);
  bundle.add({.arm = "eager"});
  const std::string cell = bundle.add_compiled({.arm = "static"}, "false");
  Json& evidence = bundle.evidence(cell);
  evidence["worker"]["prepare_seconds"] = 0.25;  // of the last process, which loads kernels
  evidence["processes"] = Json::array();
  for (const double seconds : {4.0, 0.5, 0.125, 0.25}) {
    evidence["processes"].push_back(
        {{"process", evidence["processes"].size()}, {"prepare_seconds", seconds}});
  }
  const CompileCost cost = analyze(bundle.build(), {}, nullptr)->compile_costs.at(0);
  EXPECT_EQ(cost.prepare_s, 4.0);
  EXPECT_EQ(cost.later_prepare_s, 0.25) << "the median";
  EXPECT_EQ(cost.later_processes, 3);
  EXPECT_FALSE(cost.first_loaded);
  bundle.evidence(cell)["processes"][0]["counters"] = {{"kernels_compiled", 0},
                                                       {"kernels_loaded", 11}};
  EXPECT_TRUE(analyze(bundle.build(), {}, nullptr)->compile_costs.at(0).first_loaded);
}

TEST(CompileCosts, HaveWhatTheCompilerTookForTheParityCheck) {
  SyntheticBundle bundle(8);
  bundle.add({.arm = "eager"});
  const std::string cell = bundle.add_compiled({.arm = "static"}, "false");
  EXPECT_FALSE(analyze(bundle.build(), {}, nullptr)->compile_costs.at(0).parity_compile_s);
  bundle.raw().parity[cell][kParityCost] =
      parity_cost_to_json({.seconds = 9, .compile_seconds = 4.5, .own_process = true});
  EXPECT_EQ(analyze(bundle.build(), {}, nullptr)->compile_costs.at(0).parity_compile_s, 4.5);
}

TEST(CompileCosts, SayWhatWentWrongAndLeaveTheStackToTheEvidence) {
  SyntheticBundle bundle(5);
  bundle.add({.arm = "eager"});
  const std::string cell = bundle.add_compiled({.arm = "static"}, "auto");
  bundle.evidence(cell)["worker"]["prepare_seconds"] = nullptr;
  bundle.evidence(cell)["failures"] = {
      {{"class", "RuntimeError"},
       {"message", "Error: overwritten by a subsequent run. Stack trace: File \"m.py\"\n  f()"}}};
  const Findings findings = *analyze(bundle.build(), {}, nullptr);
  ASSERT_EQ(findings.compile_costs.size(), 1u);
  EXPECT_EQ(findings.compile_costs[0].problem,
            "RuntimeError: Error: overwritten by a subsequent run.");
  EXPECT_FALSE(findings.compile_costs[0].prepare_s) << "it was never prepared: absent, not 0";
}

}  // namespace
}  // namespace assay
