// The sentence of each phase, and each arm's figures.
#include "report/phase_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/small_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// Two arms over prompts of 10, 80 and 400 tokens in one phase, with these verdicts.
Findings with_verdicts(const std::vector<std::pair<Verdict, double>>& verdicts) {
  constexpr int64_t kTokens[] = {10, 80, 400};
  Findings findings;
  findings.study.arms = {"eager", "compiled"};
  findings.study.baseline = "eager";
  findings.study.repetitions = 30;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    findings.strata.push_back({Phase::kPrefill, "gpt2", fmt::format("s{}", i), 0, 1});
    findings.prompts.push_back({kTokens[i], kTokens[i]});
    for (const std::string& arm : findings.study.arms) {
      OutcomeCounts outcome;
      outcome.stratum = i;
      outcome.arm = arm;
      findings.outcomes.push_back(outcome);
      Latency latency;
      latency.stratum = i;
      latency.arm = arm;
      latency.mean = arm == "eager" ? 10.0 : 10 * verdicts[i].second;
      latency.mean_interval = stats::Interval{*latency.mean * 0.98, *latency.mean * 1.02};
      findings.latencies.push_back(latency);
    }
    Contrast contrast;
    contrast.stratum = i;
    contrast.arm = "compiled";
    contrast.baseline = "eager";
    contrast.verdict = verdicts[i].first;
    contrast.ratio = verdicts[i].second;
    contrast.ratio_interval = stats::Interval{contrast.ratio - 0.02, contrast.ratio + 0.02};
    contrast.minimum_detectable = 0.03;
    findings.contrasts.push_back(contrast);
  }
  return findings;
}

std::string said(const Findings& findings) {
  return phase_answers(findings).at(0).sentence;
}

TEST(PhaseAnswers, TellHowTimeGrowsWithTheSizesThatDiffer) {
  Findings findings = with_verdicts({{Verdict::kSlower, 1.04}, {Verdict::kSlower, 1.06}});
  findings.latencies[2].mean = 30;
  EXPECT_EQ(phase_answers(findings).at(0).growth,
            "Prefill by prompt tokens, 10, 80 (8 times): eager 10.0, 30.0 ms (3 times); compiled "
            "10.4, 10.6 ms (1.02 times).");
  findings.prompts[1] = findings.prompts[0];
  EXPECT_EQ(phase_answers(findings).at(0).growth, "") << "two prompts of one length";
}

TEST(PhaseAnswers, AnArmWhoseOutputFailedParityHasNoGrowth) {
  Findings findings = with_verdicts({{Verdict::kSlower, 1.04}, {Verdict::kSlower, 1.06}});
  findings.latencies[3].parity_failed = true;
  const std::string growth = phase_answers(findings).at(0).growth;
  EXPECT_THAT(growth, HasSubstr("eager 10.0, 10.0 ms"));
  EXPECT_THAT(growth, Not(HasSubstr("compiled")));
}

TEST(PhaseAnswers, OneVerdictIsOneClause) {
  EXPECT_EQ(said(with_verdicts({{Verdict::kSlower, 1.04}, {Verdict::kSlower, 1.06}})),
            "Prefill: compiled is slower than eager at every length (4.0 to 6.0 % more time [2.0, "
            "8.0]); eager takes 10.0 ms, 1000 to 8000 tokens/s.");
  EXPECT_EQ(said(with_verdicts({{Verdict::kFaster, 0.2}})),
            "Prefill: compiled is faster than eager (5.00 times as fast [4.55, 5.56]); eager takes "
            "10.0 ms [9.80, 10.2], 1000 tokens/s.");
  EXPECT_THAT(said(with_verdicts({{Verdict::kEquivalent, 1.001}})),
              StartsWith("Prefill: compiled is as fast as eager (+0.1 % of time [-1.9, +2.1]);"));
}

TEST(PhaseAnswers, OneAfterTheOtherSaysWhatWasAndWhatTheRatioContains) {
  Findings findings = with_verdicts({{Verdict::kSlower, 1.04}});
  findings.study.order = "sequential";
  EXPECT_EQ(said(findings),
            "Prefill: compiled was slower than eager (4.0 % more time [2.0, 6.0]); measured one "
            "after the other: what changed on the machine between is in this ratio; eager takes "
            "10.0 ms [9.80, 10.2], 1000 tokens/s.");
  findings.contrasts.clear();
  EXPECT_THAT(said(findings), Not(HasSubstr("this ratio")));
}

TEST(PhaseAnswers, AChangeOfVerdictNamesTheLengths) {
  EXPECT_THAT(
      said(with_verdicts(
          {{Verdict::kInconclusive, 0.98}, {Verdict::kFaster, 0.95}, {Verdict::kFaster, 0.8}})),
      StartsWith("Prefill: compiled is undecided against eager up to 10 tokens (-2.0 % of time "
                 "[-4.0, +0.0]; about 38 repetitions more would show 2.0 %), faster from 80 tokens "
                 "on (5.0 to 20 % less time [3.0, 22]);"));
  // Verdicts that alternate are counted.
  EXPECT_THAT(
      said(with_verdicts(
          {{Verdict::kFaster, 0.9}, {Verdict::kSlower, 1.1}, {Verdict::kFaster, 0.8}})),
      HasSubstr(
          "faster than eager up to 10 tokens (10 % less time [8.0, 12]), slower at 80 tokens"));
}

TEST(PhaseAnswers, WhatIsOpenSaysWhatWouldDecide) {
  Findings findings = with_verdicts({{Verdict::kInconclusive, 1.001}});
  EXPECT_THAT(said(findings), HasSubstr("these rows show 3.0 % or more"));
  findings.contrasts[0].one_process = true;
  EXPECT_THAT(said(findings), HasSubstr("one process can't show it"));
  findings.contrasts[0].one_process = false;
  findings.contrasts[0].ratio_interval.reset();
  findings.contrasts[0].ratio_process_range = stats::Interval{0.99, 1.02};
  findings.contrasts[0].units_arm = findings.contrasts[0].units_baseline = 2;
  EXPECT_THAT(said(findings), HasSubstr("processes -1.0 to +2.0; an interval takes 4 processes an "
                                        "arm, and 2 ran"));
}

TEST(PhaseAnswers, ArmsThatStandAlikeShareAClause) {
  Findings findings = with_verdicts({{Verdict::kSlower, 1.04}, {Verdict::kSlower, 1.06}});
  findings.study.arms.emplace_back("static");
  for (const Contrast& contrast : std::vector(findings.contrasts)) {
    findings.contrasts.push_back(contrast);
    findings.contrasts.back().arm = "static";
    findings.contrasts.back().ratio = 1.1;
    OutcomeCounts outcome;
    outcome.stratum = contrast.stratum;
    outcome.arm = "static";
    findings.outcomes.push_back(outcome);
  }
  EXPECT_THAT(said(findings), StartsWith("Prefill: compiled and static are slower than eager at "
                                         "every length (4.0 to 10 % more time"));
}

TEST(PhaseAnswers, AStudyOfOneArmShowsItsFigures) {
  Findings findings = with_verdicts({{Verdict::kSlower, 1.04}});
  findings.study.arms = {"eager"};
  findings.contrasts.clear();
  EXPECT_EQ(said(findings), "Prefill: eager takes 10.0 ms [9.80, 10.2], 1000 tokens/s.");
  const Table table = arm_table(phase_answers(findings));
  ASSERT_EQ(table.columns.size(), 4u) << "no ratio, verdict, p99 or lost rows";
  EXPECT_EQ(cell_text(table.rows.at(0).at(2)), "10.0 [9.80, 10.2]");
}

TEST(PhaseAnswers, OfABundleHaveEachArmsFiguresAndLosses) {
  const Findings findings = small_findings();
  const std::vector<PhaseAnswer> answers = phase_answers(findings);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1].sentence, HasSubstr("compiled (partly eager) is faster than eager"));
  EXPECT_THAT(answers[1].sentence, HasSubstr("not compared from 200 tokens on (static: lost 5 of"));
  EXPECT_THAT(answers[0].sentence, Not(HasSubstr("broken is faster")));
  const Table table = arm_table(answers);
  EXPECT_EQ(table.rows.size(), 8u);
  EXPECT_EQ(table.columns.back().name, "lost");
  const Json json = phase_answers_json(answers);
  EXPECT_EQ(json[1]["arms"][1]["arm"], "static");
  EXPECT_EQ(json[1]["arms"][1]["lost"], 5);
  EXPECT_EQ(json[1]["arms"][3]["verdicts"]["faster"], 2);
  EXPECT_EQ(json[1]["sentence"], answers[1].sentence);
}

}  // namespace
}  // namespace assay
