// Every named finding on a bundle that has the defect and on one that hasn't.
#include "analysis/named/named.h"
#include "analysis/of_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two arms of one stratum without a defect.
struct Clean {
  explicit Clean(double static_ms = 10) : bundle(99) {
    eager = bundle.add({.arm = "eager", .noise = 0.01, .warmup = 2, .cold_factor = 1});
    compiled = bundle.add(
        {.arm = "static", .mean_ms = static_ms, .noise = 0.01, .warmup = 2, .cold_factor = 1});
  }
  SyntheticBundle bundle;
  std::string eager;
  std::string compiled;
};

TEST(Named, ACleanBundleHasNoFindings) {
  Clean clean;
  AnalysisOptions options;
  options.resamples = 500;
  const Findings findings = *analyze(clean.bundle.build(), options, nullptr);
  for (const Finding& finding : findings.named) {
    ADD_FAILURE() << finding.kind << ": " << finding.text;
  }
}

TEST(Named, AColdFirstSampleThatIsMarkedIsANote) {
  Clean clean;
  clean.bundle.row(clean.compiled, -2).latency_ms = 60;
  const auto found = of_kind(clean.bundle, "cold_start_skew");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_THAT(found[0].text, HasSubstr("left out as cold"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(-2));
}

TEST(Named, AColdFirstSampleThatIsNotMarkedIsAWarning) {
  Clean clean;
  for (const int repetition : {-2, -1}) clean.bundle.row(clean.compiled, repetition).cold = false;
  clean.bundle.row(clean.compiled, -2).latency_ms = 60;
  const auto found = of_kind(clean.bundle, "cold_start_skew");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_NEAR(found[0].size, 6, 0.1);
  EXPECT_THAT(found[0].text, HasSubstr("counts in the mean"));
}

TEST(Named, ColdRowsThatWouldMoveTheMeanAreNoted) {
  Clean clean;
  for (const int repetition : {-2, -1}) clean.bundle.row(clean.eager, repetition).latency_ms = 25;
  const auto found = of_kind(clean.bundle, "cold_start_skew");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text,
              HasSubstr("2 cold rows were left out; they would move the mean by +9"));
  EXPECT_THAT(found[0].rows.at(clean.eager), ElementsAre(-2, -1));
}

TEST(Named, MeanAndMedianThatRankArmsDifferentlyNameTheSamples) {
  Clean clean(9.5);
  for (const int i : {3, 7, 12, 18, 21, 27}) clean.bundle.row(clean.compiled, i).latency_ms = 25;
  const auto found = of_kind(clean.bundle, "mean_median_disagreement");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_THAT(found[0].text, HasSubstr("slower than eager by the mean"));
  EXPECT_THAT(found[0].text, HasSubstr("largest of 30 samples, up to 25.00 ms, decide the mean"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), testing::Contains(7));
  EXPECT_EQ(found[0].rows.size(), 1u);
}

// Two rows of 30 can't place the mean: it is the ranking that hinges on them.
TEST(Named, AMeanThatIsNotSureDisagreesWithNoMedian) {
  Clean clean(9.5);
  clean.bundle.row(clean.compiled, 7).latency_ms = 40;
  clean.bundle.row(clean.compiled, 21).latency_ms = 35;
  EXPECT_THAT(of_kind(clean.bundle, "mean_median_disagreement"), testing::IsEmpty());
  EXPECT_EQ(of_kind(clean.bundle, "ranking_sensitive").size(), 1u);
}

// A few rows near zero in one arm, whose largest are as good as the other's.
TEST(Named, RowsNearZeroAreBlamedThemselves) {
  Clean clean(10.2);
  for (const int i : {2, 9, 16, 23, 28}) clean.bundle.row(clean.compiled, i).latency_ms = 0.01;
  const auto found = of_kind(clean.bundle, "mean_median_disagreement");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "eager");
  EXPECT_THAT(found[0].text, HasSubstr("static's 5 smallest of 30 samples, down to 0.01000 ms"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(2, 9, 16, 23, 28));
  EXPECT_EQ(found[0].rows.size(), 1u);
  Clean one(10.2);
  one.bundle.row(one.compiled, 9).latency_ms = 0.01;
  EXPECT_THAT(of_kind(one.bundle, "mean_median_disagreement"), testing::IsEmpty());
  const auto sensitive = of_kind(one.bundle, "ranking_sensitive");
  ASSERT_EQ(sensitive.size(), 1u);
  EXPECT_THAT(sensitive[0].text, HasSubstr(" without the smallest"));
  EXPECT_THAT(sensitive[0].rows.at(one.compiled), ElementsAre(9));
}

TEST(Named, RowsThatAreRecordedAsOkAndCannotBeAreNamed) {
  Clean clean;
  clean.bundle.lose(clean.compiled, 5, RowStatus::kFalseSuccess, "too_few_tokens");
  EXPECT_THAT(of_kind(clean.bundle, "false_ok"), testing::IsEmpty()) << "the run said so itself";
  Bundle bundle = clean.bundle.build();
  for (size_t i = 0; i < bundle.rows.size(); ++i) {
    if (bundle.rows[i].status == RowStatus::kFalseSuccess) bundle.false_oks.push_back(i);
  }
  const Findings findings = *analyze(bundle, {}, nullptr);
  const auto found = std::ranges::find(findings.named, "false_ok", &Finding::kind);
  ASSERT_NE(found, findings.named.end());
  EXPECT_THAT(found->text, HasSubstr("1 of 32 rows is recorded as ok but cannot have been"));
  EXPECT_THAT(found->text, HasSubstr("1 false_success (too_few_tokens)"));
  EXPECT_THAT(found->rows.at(clean.compiled), ElementsAre(5));
}

TEST(Named, DriftAlongTheOrderIsSized) {
  Clean clean;
  for (int i = 0; i < 30; ++i) *clean.bundle.row(clean.eager, i).latency_ms *= 1 + 0.1 * i / 29;
  const auto found = of_kind(clean.bundle, "drift");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "eager");
  EXPECT_NEAR(found[0].size, 0.1, 0.02);
  EXPECT_EQ(found[0].rows.at(clean.eager).size(), 30u);
}

// Deals the 30 repetitions of a cell to processes: rows of warm-ups are the first process's.
void share_among(SyntheticBundle& bundle, const std::string& cell_id, int64_t processes) {
  for (Row& row : bundle.raw().rows) {
    if (row.cell_id != cell_id) continue;
    row.process = std::max<int64_t>(0, row.repetition) * processes / 30;
  }
}

// Factor of the process that the repetition belongs to.
const double kLevels[] = {1.0, 1.08, 1.02};

TEST(Named, LevelsOfProcessesAreNeitherDriftNorAChange) {
  Clean clean;
  for (int i = 0; i < 30; ++i) *clean.bundle.row(clean.eager, i).latency_ms *= kLevels[i / 10];
  EXPECT_EQ(of_kind(clean.bundle, "level_change").size(), 1u) << "within one process it is one";
  share_among(clean.bundle, clean.eager, 3);
  EXPECT_EQ(of_kind(clean.bundle, "level_change").size(), 0u);
  EXPECT_EQ(of_kind(clean.bundle, "drift").size(), 0u);
}

TEST(Named, DriftWithinEachProcessIsFoundUnderTheirLevels) {
  Clean clean;
  for (int i = 0; i < 30; ++i) {
    *clean.bundle.row(clean.eager, i).latency_ms *= kLevels[i / 10] * (1 + 0.1 * (i % 10) / 9);
  }
  share_among(clean.bundle, clean.eager, 3);
  const auto found = of_kind(clean.bundle, "drift");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].size, 0.1, 0.03);
  EXPECT_THAT(found[0].text, HasSubstr("30 warm rows of 3 processes"));
}

TEST(Named, DriftFromProcessToProcessIsFound) {
  Clean clean;
  for (int i = 0; i < 30; ++i) {
    const int process = i / 3;
    *clean.bundle.row(clean.eager, i).latency_ms *= 1 + 0.1 * process / 9;
  }
  share_among(clean.bundle, clean.eager, 10);
  const auto found = of_kind(clean.bundle, "drift");
  ASSERT_EQ(found.size(), 2u) << "of the rounds of all cells, and of the cell";
  EXPECT_FALSE(found[0].stratum);
  EXPECT_TRUE(found[1].stratum);
  EXPECT_NEAR(found[0].size, 0.1, 0.03);
}

TEST(Named, ProcessesThatStartSlowlyAreFoundAndOneOfThemIsNot) {
  Clean clean;
  share_among(clean.bundle, clean.compiled, 3);
  clean.bundle.row(clean.compiled, 20).latency_ms = 60;
  EXPECT_EQ(of_kind(clean.bundle, "cold_start_skew").size(), 0u) << "any call may be slow";
  for (const int first : {-2, 10}) {
    clean.bundle.row(clean.compiled, first).latency_ms = 50;
    clean.bundle.row(clean.compiled, first).cold = false;
  }
  const auto found = of_kind(clean.bundle, "cold_start_skew");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_THAT(found[0].text,
              HasSubstr("the first samples of 3 of 3 processes are slow; the slowest, 60"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(-2, 10, 20));
}

TEST(Named, ASlowStartAmongSlowCallsIsNoColdStart) {
  Clean clean;
  for (const int slow : {4, 9, 15, 16, 22, 27}) {
    clean.bundle.row(clean.eager, slow).latency_ms = 70;
  }
  clean.bundle.row(clean.compiled, -2).latency_ms = 60;
  EXPECT_EQ(of_kind(clean.bundle, "cold_start_skew").size(), 0u);
  clean.bundle.row(clean.compiled, -2).latency_ms = 600;  // beyond all of them
  EXPECT_EQ(of_kind(clean.bundle, "cold_start_skew").size(), 1u);
}

// Ten cells in rounds of five processes.
SyntheticBundle five_rounds(double process_shift, double drift = 0, uint64_t seed = 17) {
  SyntheticBundle bundle(seed);
  for (int cell = 0; cell < 10; ++cell) {
    bundle.add({.arm = cell % 2 == 0 ? "eager" : "static",
                .scenario = fmt::format("s{}", cell / 2),
                .noise = 0.02,
                .drift = drift,
                .processes = 5,
                .process_shift = process_shift});
  }
  return bundle;
}

TEST(Named, DriftOverRoundsOfFewProcessesIsFoundOverAllCells) {
  SyntheticBundle bundle = five_rounds(0, 0.1);
  const auto found = of_kind(bundle, "drift");
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].stratum);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_NEAR(found[0].size, 0.08, 0.02) << "from the first round's middle to the last one's";
  EXPECT_THAT(found[0].text, HasSubstr("from the first to the last of 5 rounds of worker "
                                       "processes, over 10 cells"));
  EXPECT_EQ(found[0].rows.size(), 10u);
  EXPECT_THAT(of_kind(bundle, "level_change"), testing::IsEmpty());
}

TEST(Named, AChangeOfLevelBetweenRoundsIsNoDrift) {
  SyntheticBundle bundle = five_rounds(0);
  for (Row& row : bundle.raw().rows) {
    if (*row.process >= 2) *row.latency_ms *= 1.1;
  }
  const auto found = of_kind(bundle, "level_change");
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].stratum);
  EXPECT_NEAR(found[0].size, 0.1, 0.02);
  EXPECT_THAT(found[0].text, HasSubstr("from round 3 of 5 rounds of worker processes on"));
  EXPECT_EQ(found[0].rows.begin()->second.front(), 12) << "the third process' first row";
  EXPECT_THAT(of_kind(bundle, "drift"), testing::IsEmpty());
}

TEST(Named, ProcessesThatDifferAreSizedByTheirIntraclassCorrelation) {
  SyntheticBundle bundle = five_rounds(0.05);
  const auto found = of_kind(bundle, "processes_differ");
  EXPECT_GT(found.size(), 7u);
  EXPECT_THAT(of_kind(bundle, "autocorrelation"), testing::IsEmpty());
  const Findings findings = *analyze(bundle.build(), {}, nullptr);
  const Latency& latency = findings.latencies.at(0);
  ASSERT_TRUE(latency.intraclass);
  EXPECT_LT(*latency.processes_p_holm, 0.05);
  EXPECT_NEAR(*latency.n_effective, 30 / (1 + 5 * *latency.intraclass), 1e-9);
  EXPECT_LT(*latency.n_effective, 9);
  SyntheticBundle alike = five_rounds(0, 0, 18);
  EXPECT_THAT(of_kind(alike, "processes_differ"), testing::IsEmpty());
}

// Rows within a process that resemble their neighbours are no difference between processes.
TEST(Named, DependenceWithinProcessesIsNoDifferenceBetweenThem) {
  SyntheticBundle bundle(19);
  for (int cell = 0; cell < 6; ++cell) {
    bundle.add({.arm = cell % 2 == 0 ? "eager" : "static",
                .scenario = fmt::format("s{}", cell / 2),
                .noise = 0.02,
                .repetitions = 200,
                .autocorrelation = 0.7,
                .processes = 10});
  }
  const auto found = of_kind(bundle, "autocorrelation");
  ASSERT_GE(found.size(), 6u);
  EXPECT_THAT(found[0].text, HasSubstr("neighbouring repetitions within a process"));
  EXPECT_LE(of_kind(bundle, "processes_differ").size(), 1u);
}

// Two strata; the second arm's slow calls are all on the first one.
struct SlowOnOneStratum {
  SlowOnOneStratum() {
    for (const char* scenario : {"s0", "s1"}) {
      bundle.add({.arm = "eager", .scenario = scenario, .noise = 0.01});
      cells.push_back(
          bundle.add({.arm = "static", .scenario = scenario, .mean_ms = 9.5, .noise = 0.01}));
    }
    for (const int slow : {5, 17}) bundle.row(cells[0], slow).latency_ms = 50;
  }
  SyntheticBundle bundle{23};
  std::vector<std::string> cells;
};

TEST(Named, SlowCallsOfOneArmAreAllowedForWhereItsRowsHoldNone) {
  SlowOnOneStratum slow;
  const auto found = of_kind(slow.bundle, "one_sided_tail");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_THAT(found[0].text, HasSubstr("2 of 60 warm rows take more than 3 times their median, and "
                                       "none of eager's: on 1 stratum"));
  EXPECT_THAT(found[0].rows.at(slow.cells[0]), ElementsAre(5, 17));
  AnalysisOptions options;
  options.resamples = 500;
  const auto contrast_of = [&] {
    return analyze(slow.bundle.build(), options, nullptr)->contrasts.at(1);
  };
  const Contrast allowed = contrast_of();
  EXPECT_EQ(allowed.slow_arm, "static");
  EXPECT_GT(allowed.unseen_slow_factor, 1.3);
  EXPECT_EQ(allowed.verdict, ::assay::Verdict::kInconclusive);
  EXPECT_GT(allowed.ratio_interval->high, 1.2);
  const Contrast over_both = analyze(slow.bundle.build(), options, nullptr)->combined.at(0);
  EXPECT_EQ(over_both.strata, 2);
  EXPECT_EQ(over_both.slow_arm, "static");
  EXPECT_NEAR(over_both.unseen_slow_factor, std::sqrt(allowed.unseen_slow_factor), 1e-12);
  // With slow calls of the other arm too, or without any, the stratum's rows decide.
  slow.bundle.row("c002-eager-prefill-s1", 9).latency_ms = 50;
  EXPECT_EQ(contrast_of().unseen_slow_factor, 1);
  SlowOnOneStratum quick;
  for (const int was_slow : {5, 17}) quick.bundle.row(quick.cells[0], was_slow).latency_ms = 9.5;
  const Contrast decided = analyze(quick.bundle.build(), options, nullptr)->contrasts.at(1);
  EXPECT_EQ(decided.verdict, ::assay::Verdict::kFaster);
  EXPECT_THAT(of_kind(quick.bundle, "one_sided_tail"), testing::IsEmpty());
}

TEST(Named, AChangeOfLevelIsNoDrift) {
  Clean clean;
  for (int i = 18; i < 30; ++i) *clean.bundle.row(clean.compiled, i).latency_ms *= 1.08;
  const auto found = of_kind(clean.bundle, "level_change");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_NEAR(found[0].size, 0.08, 0.02);
  EXPECT_THAT(found[0].text, HasSubstr(" of 30 (Pettitt"));
  EXPECT_NEAR(static_cast<double>(found[0].rows.at(clean.compiled).size()), 12, 1);
  EXPECT_EQ(of_kind(clean.bundle, "drift").size(), 0u);
}

TEST(Named, ADriftIsNoChangeOfLevel) {
  Clean clean;
  for (int i = 0; i < 30; ++i) *clean.bundle.row(clean.eager, i).latency_ms *= 1 + 0.1 * i / 29;
  EXPECT_EQ(of_kind(clean.bundle, "level_change").size(), 0u);
  EXPECT_EQ(of_kind(clean.bundle, "drift").size(), 1u);
}

TEST(Named, NeighboursThatAreAlikeAreSizedByWhatTheyTell) {
  SyntheticBundle bundle(71);
  const auto alike =
      bundle.add({.arm = "eager", .noise = 0.01, .repetitions = 60, .autocorrelation = 0.8});
  bundle.add({.arm = "static", .noise = 0.01, .repetitions = 60});
  const auto found = of_kind(bundle, "autocorrelation");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "eager");
  EXPECT_GT(found[0].size, 2.5);
  EXPECT_EQ(found[0].rows.at(alike).size(), 60u);
}

TEST(Named, LostRowsAreACrashAndTheRestSurvivors) {
  Clean clean;
  clean.bundle.lose(clean.eager, 3, RowStatus::kTimeout, "");
  clean.bundle.lose(clean.eager, 4, RowStatus::kCrash, "SIGKILL");
  const auto crash = of_kind(clean.bundle, "crash");
  ASSERT_EQ(crash.size(), 1u);
  EXPECT_EQ(crash[0].text, "2 of 32 rows were lost: 1 crash (SIGKILL), 1 timeout");
  EXPECT_THAT(crash[0].rows.at(clean.eager), ElementsAre(3, 4));
  EXPECT_EQ(of_kind(clean.bundle, "survivorship").size(), 1u);
}

TEST(Named, ParityFailedAndParityUncheckedDiffer) {
  Clean failed;
  failed.bundle.raw().parity[failed.compiled] = {{"passed", false}};
  EXPECT_EQ(of_kind(failed.bundle, "parity_failure").size(), 1u);
  EXPECT_EQ(of_kind(failed.bundle, "parity_unchecked").size(), 0u);
  EXPECT_THAT(of_kind(failed.bundle, "parity_failure").at(0).text,
              HasSubstr("the output differs from the baseline's"));
  failed.bundle.raw().parity[failed.compiled]["error"]["message"] = "killed by SIGSEGV\nthere";
  EXPECT_EQ(
      of_kind(failed.bundle, "parity_failure").at(0).text,
      "no tokens came to hold against the baseline's (killed by SIGSEGV), so the latencies are "
      "reported but never contrasted");
  failed.bundle.evidence(failed.compiled)["requested"]["options"]["quantization"] = "q4.gguf";
  EXPECT_THAT(of_kind(failed.bundle, "parity_failure").at(0).text,
              HasSubstr("hold against that of the first arm with the same weights"));
  Clean unchecked;
  unchecked.bundle.raw().parity.clear();
  EXPECT_EQ(of_kind(unchecked.bundle, "parity_failure").size(), 0u);
  EXPECT_EQ(of_kind(unchecked.bundle, "parity_unchecked").size(), 1u);
  unchecked.bundle.raw().parity[unchecked.compiled] = {{"passed", nullptr}};
  EXPECT_EQ(of_kind(unchecked.bundle, "parity_failure").size(), 0u);
  EXPECT_THAT(of_kind(unchecked.bundle, "parity_unchecked").at(0).text,
              HasSubstr("no parity record"));
  unchecked.bundle.raw().parity[unchecked.compiled]["error"]["message"] = "it was lost\nthere";
  EXPECT_EQ(of_kind(unchecked.bundle, "parity_unchecked").at(0).text,
            "this arm's output was not compared with the baseline's: it was lost");
}

TEST(Named, OutputsOfOnePromptThatDifferAreListed) {
  Clean clean;
  for (const std::string& cell : {clean.eager, clean.compiled}) {
    for (int i = 0; i < 30; ++i) {
      Row& row = clean.bundle.row(cell, i);
      row.prompt_id = i % 2 == 0 ? "even" : "odd";
      row.output_hash = row.prompt_id.str() + "'s";
    }
  }
  EXPECT_THAT(of_kind(clean.bundle, "output_varies"), testing::IsEmpty());
  for (const int i : {4, 8}) clean.bundle.row(clean.compiled, i).output_hash = "another";
  clean.bundle.row(clean.compiled, 7).output_hash = "";
  const auto found = of_kind(clean.bundle, "output_varies");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_EQ(found[0].size, 2);
  EXPECT_THAT(found[0].text, HasSubstr("one prompt got 2 different outputs in 15 repetitions, the "
                                       "most frequent one 13 times"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(4, 8));
}

TEST(Named, ThrottledRowsAreListedWithTheMeanWithoutThem) {
  Clean clean;
  clean.bundle.row(clean.compiled, 5).throttled = true;
  clean.bundle.row(clean.compiled, 6).throttled = false;
  const auto found = of_kind(clean.bundle, "throttled");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("1 of 30 warm rows"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(5));
}

TEST(Named, ThrottledRowsNameWhatHeldTheClockDown) {
  Clean clean;
  clean.bundle.row(clean.compiled, 5).throttled = true;
  clean.bundle.evidence(clean.compiled)["throttle_reasons"] = {"power", "heat"};
  EXPECT_THAT(of_kind(clean.bundle, "throttled").at(0).text,
              HasSubstr("1 of 30 warm rows ran throttled (power, heat)"));
}

Json neighbour(const Row& first, int64_t rows, int64_t pid, double share) {
  return {{"unit", 1},          {"first_row", first.order_index}, {"rows", rows},  {"pid", pid},
          {"process", "train"}, {"memory_bytes", 2'000'000'000},  {"share", share}};
}

TEST(Named, AnotherProgramOnTheGpuIsNamedWithItsRowsAndShare) {
  Clean clean;
  // A unit of two rows at a share of 0.9, and one of one row at 0.3, of a cell whose rows follow.
  Json& evidence = clean.bundle.evidence(clean.compiled);
  evidence["gpu_neighbours"] = {neighbour(clean.bundle.row(clean.compiled, 3), 2, 41, 0.9),
                                neighbour(clean.bundle.row(clean.compiled, 7), 1, 41, 0.3)};
  const int64_t step = clean.bundle.row(clean.compiled, 4).order_index -
                       clean.bundle.row(clean.compiled, 3).order_index;
  evidence["gpu_neighbours"][0]["rows"] = step + 1;
  const auto found = of_kind(clean.bundle, "gpu_shared");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_THAT(found[0].text, HasSubstr("train (process 41) held 2.00 GB of its memory during 3 of "
                                       "30 warm rows and computed for 70 % of the GPU's time"));
  EXPECT_THAT(found[0].rows.at(clean.compiled), ElementsAre(3, 4, 7));
}

TEST(Named, AProgramThatOnlyHoldsMemoryIsANote) {
  Clean clean;
  clean.bundle.evidence(clean.eager)["gpu_neighbours"] = {
      neighbour(clean.bundle.row(clean.eager, 3), 1, 41, 0.004),
      neighbour(clean.bundle.row(clean.eager, -2), 1, 42, 0.9)};  // beside a cold row alone
  const auto found = of_kind(clean.bundle, "gpu_shared");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_THAT(found[0].text, HasSubstr("1 of 30 warm rows and computed nothing"));
}

// Each arm has its share of the neighbour in interleaved blocks alone.
TEST(Named, ASharedGpuVoidsWhatIsNotInterleaved) {
  for (const char* order : {"interleaved", "shuffled"}) {
    Clean clean(9);
    clean.bundle.evidence(clean.eager)["gpu_neighbours"] = {
        neighbour(clean.bundle.row(clean.eager, 3), 1, 41, 0.5)};
    Bundle bundle = clean.bundle.build();
    bundle.manifest["study"]["order"] = order;
    const Findings findings = *analyze(bundle, {}, nullptr);
    ASSERT_EQ(findings.decisions.size(), 1u);
    const bool interleaved = order == std::string_view("interleaved");
    EXPECT_EQ(findings.decisions[0].void_because.empty(), interleaved) << order;
    if (!interleaved) {
      EXPECT_THAT(findings.decisions[0].void_because, HasSubstr("gpu_shared"));
    }
  }
}

TEST(Named, TooFewSamples) {
  SyntheticBundle bundle(1);
  bundle.add({.arm = "eager", .repetitions = 4});
  bundle.add({.arm = "static", .repetitions = 5});
  const auto found = of_kind(bundle, "too_few_samples");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "eager");
}

TEST(Named, AServersClockThatItsClientCantConfirmIsNamed) {
  Clean clean;
  for (Row& row : clean.bundle.raw().rows) {
    if (row.arm == "static") row.client_ms = *row.latency_ms * 1.04;
  }
  EXPECT_THAT(of_kind(clean.bundle, "clocks_disagree"), testing::IsEmpty());
  for (Row& row : clean.bundle.raw().rows) {
    if (row.arm == "static") row.client_ms = *row.latency_ms * 1.5 + 1;
  }
  const auto found = of_kind(clean.bundle, "clocks_disagree");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_GE(found[0].size, 0.5);
  EXPECT_THAT(found[0].text, HasSubstr("figures here are the server's"));
}

// The latency of a whole request is the client's, and the server's time stands beside it.
TEST(Named, AServersClockOfAWholeRequestIsHeldAgainstItsClients) {
  Clean clean;
  for (Row& row : clean.bundle.raw().rows) {
    if (row.arm != "static") continue;
    row.client_ms = row.latency_ms;
    row.server_ms = *row.latency_ms * 0.97;
  }
  EXPECT_THAT(of_kind(clean.bundle, "clocks_disagree"), testing::IsEmpty());
  for (Row& row : clean.bundle.raw().rows) {
    if (row.arm == "static") row.server_ms = *row.latency_ms / 3;
  }
  const auto found = of_kind(clean.bundle, "clocks_disagree");
  ASSERT_FALSE(found.empty());
  EXPECT_NEAR(found[0].size, 2, 1e-9);
  EXPECT_THAT(found[0].text, HasSubstr("figures here are the client's"));
}

TEST(Named, UnlikeWeightsAreNamed) {
  Clean clean;
  for (Row& row : clean.bundle.raw().rows) {
    if (row.arm == "static") row.quantization = "q4_0";
  }
  const auto found = of_kind(clean.bundle, "unlike_precision");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text,
              HasSubstr("weights are q4_0 (the rest in fp32) and the baseline's are fp32"));
}

TEST(Named, AnotherStackAndAnotherModeAreAConfound) {
  Clean clean;
  Json& arms = clean.bundle.raw().manifest["identity"]["arms"];
  arms["eager"] = {
      {"compile_mode", "eager"}, {"cache", "static"}, {"framework_build", "torch 2.8"}};
  arms["static"] = arms["eager"];
  arms["static"]["framework_build"] = "torch 2.11";
  EXPECT_THAT(of_kind(clean.bundle, "confound"),
              testing::IsEmpty());  // the stack alone is the question
  arms["static"]["compile_mode"] = "default";
  const auto found = of_kind(clean.bundle, "confound");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("static ran as default/static under torch 2.11, the "
                                       "baseline as eager/static under torch 2.8"));
  arms["static"]["framework_build"] = "torch 2.8";
  EXPECT_THAT(of_kind(clean.bundle, "confound"), testing::IsEmpty());
}

TEST(Named, TheBundlesOwnWarningsAreFindings) {
  Clean clean;
  clean.bundle.raw().environment["warnings"] = {"debug build", {{"load", 3.5}}};
  clean.bundle.raw().complete = false;
  clean.bundle.raw().manifest["study"]["order"] = "sequential";
  EXPECT_EQ(of_kind(clean.bundle, "environment").at(0).text, "debug build");
  EXPECT_EQ(of_kind(clean.bundle, "environment").at(1).text, "{\"load\":3.5}");
  EXPECT_EQ(of_kind(clean.bundle, "incomplete").size(), 1u);
  EXPECT_EQ(of_kind(clean.bundle, "order_confounded").size(), 1u);
}

}  // namespace
}  // namespace assay
