// Decisions of few processes: with the spread that all strata show, by a ratio beyond any spread,
// and not by one process alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/analyze.h"
#include "analysis/contrast/verdict.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

struct FewProcesses {
  int64_t processes = 2;
  int strata = 1;
  double ratio = 1;
  double shift = 0.01;  // sd of the logarithm between processes
};

Bundle run_of_few(const FewProcesses& of, uint64_t seed = 1) {
  SyntheticBundle bundle(seed);
  for (int stratum = 0; stratum < of.strata; ++stratum) {
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell{.arm = arm, .scenario = fmt::format("s{}", stratum)};
      cell.mean_ms = arm == "eager" ? 10 : 10 * of.ratio;
      cell.noise = 0.002;
      cell.processes = of.processes;
      cell.process_shift = of.shift;
      bundle.add(cell);
    }
  }
  return bundle.build();
}

Findings analyzed(const Bundle& bundle, bool allow_single_process = false) {
  AnalysisOptions options;
  options.resamples = 500;
  options.allow_single_process = allow_single_process;
  return *analyze(bundle, options, nullptr);
}

const Finding* named(const Findings& findings, std::string_view kind) {
  const auto found = std::ranges::find(findings.named, kind, &Finding::kind);
  return found == findings.named.end() ? nullptr : &*found;
}

TEST(FewProcesses, OneOfEachArmDecidesNothing) {
  const Findings findings = analyzed(run_of_few({.processes = 1, .ratio = 0.9, .shift = 0}));
  const Contrast& contrast = findings.contrasts.at(0);
  EXPECT_TRUE(contrast.one_process);
  EXPECT_LT(contrast.p_holm, 0.001) << "rows alone would decide it";
  EXPECT_EQ(contrast.verdict, Verdict::kInconclusive);
  EXPECT_EQ(findings.combined.at(0).verdict, Verdict::kInconclusive);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kUndecided);
  const Finding* finding = named(findings, "one_process");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kWarning) << "the screen shows it first";
  EXPECT_THAT(finding->text, HasSubstr("1 of 1 comparison stay undecided"));
}

TEST(FewProcesses, OneOfEachArmDecidesWhatNoTwoProcessesDifferBy) {
  const Findings findings = analyzed(run_of_few({.processes = 1, .ratio = 0.05, .shift = 0}));
  EXPECT_EQ(findings.contrasts.at(0).verdict, Verdict::kFaster);
  EXPECT_EQ(findings.decisions.at(0).kind, Decision::Kind::kBest);
  EXPECT_EQ(named(findings, "one_process")->severity, Severity::kNote);
}

TEST(FewProcesses, OneOfEachArmDecidesByItsRowsIfThatIsAllowed) {
  const Findings findings = analyzed(run_of_few({.processes = 1, .ratio = 0.9, .shift = 0}), true);
  EXPECT_EQ(findings.contrasts.at(0).verdict, Verdict::kFaster);
  EXPECT_EQ(named(findings, "one_process")->severity, Severity::kNote);
}

TEST(FewProcesses, RowsThatNameNoProcessAreJudgedAsEver) {
  const Findings findings = analyzed(run_of_few({.processes = 0, .ratio = 0.9, .shift = 0}));
  EXPECT_FALSE(findings.contrasts.at(0).one_process);
  EXPECT_EQ(findings.contrasts.at(0).verdict, Verdict::kFaster);
  EXPECT_EQ(named(findings, "one_process"), nullptr);
}

TEST(FewProcesses, TwoOfEachArmDecideWhatNoTwoProcessesDifferBy) {
  const Findings findings = analyzed(run_of_few({.ratio = 0.0587}));
  const Contrast& contrast = findings.contrasts.at(0);
  EXPECT_FALSE(contrast.ratio_interval) << "one degree of freedom makes none";
  ASSERT_TRUE(contrast.ratio_process_range);
  EXPECT_EQ(contrast.verdict, Verdict::kFaster);
  EXPECT_EQ(analyzed(run_of_few({.ratio = 0.9, .shift = 0.2})).contrasts.at(0).verdict,
            Verdict::kInconclusive);
}

// The first stratum's processes spread 30 times as much as the others'.
Findings with_a_wild_stratum(bool wild) {
  Bundle run = run_of_few({.strata = 10, .ratio = 0.8});
  for (Row& row : run.rows) {
    if (wild && row.scenario == "s0" && row.process == 1) *row.latency_ms *= 1.35;
  }
  return analyzed(run);
}

TEST(FewProcesses, TwoOfEachArmShareTheSpreadOfTenStrataUnlessOneStandsOut) {
  const auto faster = [](const Findings& findings) {
    return std::ranges::count(findings.contrasts, Verdict::kFaster, &Contrast::verdict);
  };
  const Findings alike = with_a_wild_stratum(false);
  EXPECT_TRUE(alike.contrasts.at(1).ratio_interval);
  EXPECT_EQ(faster(alike), 10);
  const Findings wild = with_a_wild_stratum(true);
  EXPECT_EQ(faster(wild), 0) << "two processes that agree may do so by chance";
  for (const Contrast& contrast : wild.contrasts) {
    EXPECT_FALSE(contrast.test);
    EXPECT_TRUE(contrast.ratio_process_range);
  }
}

TEST(FewProcesses, TenStrataTellTheSpreadThatOneDoesNot) {
  const Findings alone = analyzed(run_of_few({.processes = 3, .strata = 1, .ratio = 0.9}));
  EXPECT_FALSE(alone.contrasts.at(0).shared_df);
  EXPECT_TRUE(alone.contrasts.at(0).ratio_process_range);
  EXPECT_TRUE(alone.latencies.at(0).mean_process_range);

  const Findings ten = analyzed(run_of_few({.processes = 3, .strata = 10, .ratio = 0.9}));
  int64_t faster = 0;
  for (const Contrast& contrast : ten.contrasts) {
    if (!contrast.shared_df) continue;
    EXPECT_GT(*contrast.shared_df, 2);
    ASSERT_TRUE(contrast.ratio_interval);
    EXPECT_FALSE(contrast.ratio_process_range);
    EXPECT_TRUE(contrast.ratio_interval->contains(contrast.ratio));
    faster += contrast.verdict == Verdict::kFaster;
  }
  EXPECT_GE(faster, 8) << "10 % faster, where processes differ by 1 %";
}

TEST(FewProcesses, MoreProcessesHaveNarrowerIntervalsForTheOtherStrata) {
  const auto width = [](const Findings& findings) {
    const stats::Interval& interval = *findings.contrasts.at(0).ratio_interval;
    return std::log(interval.high / interval.low);
  };
  double narrower = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const double one = width(analyzed(run_of_few({.processes = 5, .strata = 1}, seed)));
    narrower += width(analyzed(run_of_few({.processes = 5, .strata = 10}, seed))) < one;
  }
  EXPECT_GT(narrower, 10);
}

TEST(VerdictRule, OfOneProcessOnlyAnIntervalBeyondAllSpreadDecides) {
  const AdjustedTests sure{1e-9, 1e-9};
  ShownRatio shown{.ratio = 0.5, .interval = stats::Interval{0.45, 0.55}};
  EXPECT_EQ(verdict_of(shown, {1e-9, 1}, 0.05, 0.03), Verdict::kFaster);
  shown.one_process = true;
  EXPECT_EQ(verdict_of(shown, {1e-9, 1}, 0.05, 0.03), Verdict::kInconclusive);
  EXPECT_EQ(verdict_of({.ratio = 0.3, .interval = stats::Interval{0.2, 0.39}, .one_process = true},
                       {1e-9, 1}, 0.05, 0.03),
            Verdict::kFaster);
  EXPECT_EQ(verdict_of({.ratio = 1, .interval = stats::Interval{0.99, 1.01}, .one_process = true},
                       sure, 0.05, 0.03),
            Verdict::kInconclusive)
      << "no two programs are shown to be equal by one process of each";
}

}  // namespace
}  // namespace assay
