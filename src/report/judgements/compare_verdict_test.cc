// A comparison's sentences follow from its tables.
#include "report/judgements/compare_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "report/judgements/compare_report.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ComparedCell figure(double ratio, std::optional<Verdict> verdict) {
  ComparedCell cell;
  cell.stratum = 0;
  cell.arm = "eager";
  cell.ratio = ratio;
  cell.by_processes = verdict.has_value();
  cell.verdict = verdict;
  if (verdict) cell.ratio_interval = stats::Interval{ratio - 0.0267, ratio + 0.0274};
  return cell;
}

Comparison comparison_of(std::vector<ComparedCell> cells) {
  Comparison comparison;
  comparison.strata = {{Phase::kPrefill, "tiny", "single_micro", 0, 1}};
  comparison.cells = std::move(cells);
  return comparison;
}

std::string text_of(const Comparison& comparison) {
  const CompareDemands demands{.regression = true};
  return verdict_headline(comparison, demands) + "\n" +
         join(verdict_sentences(comparison, demands), "\n");
}

TEST(CompareVerdict, WhatIsSlowerWithoutAnAlarmIsNotCalledNothing) {
  const std::string text = text_of(comparison_of({figure(1.0729, Verdict::kSlower)}));
  EXPECT_THAT(text, HasSubstr("no alarm, but these are slower, by more than 2 % in what was "
                              "measured: eager on prefill, tiny, "
                              "single_micro: +7.29 % [+4.62, +10.03]."));
  EXPECT_THAT(text, Not(HasSubstr("is shown to be")));
}

TEST(CompareVerdict, WhatTheIntervalsAllowIsSaid) {
  EXPECT_THAT(
      text_of(comparison_of({figure(1.01, Verdict::kInconclusive)})),
      AllOf(HasSubstr("1 cell compared: 1 inconclusive."),
            HasSubstr("no cell is shown to be slower by more than 2 %. Intervals allow for up "
                      "to +3.74 % (eager on prefill, tiny, single_micro).")));
  EXPECT_THAT(text_of(comparison_of({figure(0.98, Verdict::kEquivalent)})),
              Not(HasSubstr("allow for up to")));
}

TEST(CompareReport, TheColumnsOfTheCellsAreExplainedOnce) {
  Comparison comparison =
      comparison_of({figure(1.01, Verdict::kInconclusive), figure(1.02, Verdict::kInconclusive)});
  comparison.strata.push_back({Phase::kKvDecode, "tiny", "single_micro", 16, 1});
  comparison.cells[1].phase = Phase::kKvDecode;
  comparison.cells[1].stratum = 1;
  for (ComparedCell& cell : comparison.cells) {
    cell.base = cell.cand = ComparedSide();
    cell.machine = MachineShare();
  }
  const std::string markdown = render_comparison(comparison, OutputFormat::kMarkdown, {});
  EXPECT_THAT(markdown, HasSubstr("## kv_decode, cell by cell"));
  for (const char* once : {"mean time of warm ok rows", "machine: how much slower"}) {
    const size_t at = markdown.find(once);
    ASSERT_NE(at, std::string::npos) << once;
    EXPECT_EQ(markdown.find(once, at + 1), std::string::npos) << once;
  }
}

TEST(CompareVerdict, ItBeginsWithTheRatioOfEachPhaseAndTheCaveat) {
  Comparison comparison = comparison_of(
      {figure(1.1, Verdict::kSlower), figure(1.2, Verdict::kSlower), figure(0.98, std::nullopt)});
  comparison.cells[2].phase = Phase::kKvDecode;
  EXPECT_THAT(verdict_top(comparison, {}),
              testing::ElementsAre(
                  HasSubstr("passes: "),
                  "prefill slower, 1.10 to 1.20 [1.07, 1.23] of the base's time; kv_decode not "
                  "decided, 0.980."));
  comparison.cells[1].verdict = Verdict::kInconclusive;
  comparison.caveat = "Beware.";
  EXPECT_THAT(verdict_top(comparison, {}),
              testing::ElementsAre(HasSubstr("passes: "),
                                   HasSubstr("prefill 1 inconclusive, 1 slower, 1.10 to 1.20 ["),
                                   "Beware."));
  const std::string text = render_comparison(comparison_of({}), OutputFormat::kTable, {});
  EXPECT_THAT(text, Not(HasSubstr("of the base's time")));
  comparison.in_one_run = true;
  EXPECT_EQ(verdict_top(comparison, {}).size(), 2U) << "the first rows of its verdicts are these";
}

TEST(CompareVerdict, SlowerWithinTheMarginIsNothingBeyondIt) {
  EXPECT_THAT(text_of(comparison_of({figure(1.015, Verdict::kSlower)})),
              HasSubstr("no cell is shown to be slower by more than 2 %"));
}

TEST(CompareVerdict, OfOneProcessNothingIsSaidOfSpeed) {
  const Comparison none = comparison_of({figure(1.4, {})});
  EXPECT_THAT(text_of(none),
              AllOf(HasSubstr("1 of 1 cell not decided: one process a side can't show what differs "
                              "between processes"),
                    HasSubstr("No cell was judged"), Not(HasSubstr("slower"))));
  EXPECT_EQ(verdict_word(none, {.regression = true}), "NOTHING JUDGED");
  Comparison regressed = comparison_of({figure(1.4, Verdict::kSlower)});
  regressed.cells[0].regression = true;
  EXPECT_EQ(verdict_word(regressed, {.regression = true}), "FAILS");
  EXPECT_EQ(verdict_word(regressed, {}), "passes");
}

TEST(CompareVerdict, CellsJudgedByRowsAreSaidToBe) {
  Comparison by_rows = comparison_of({figure(1.01, Verdict::kInconclusive)});
  by_rows.cells[0].by_processes = false;
  EXPECT_THAT(text_of(by_rows),
              HasSubstr("1 of 1 cell is judged by the rows of one process a side"));
}

TEST(CompareVerdict, AMachineThatWasBusierIsNamed) {
  Comparison comparison = comparison_of({figure(1.01, Verdict::kInconclusive)});
  comparison.load_differences = {"mean load average 1.00 in the base, 2.50 in the candidate"};
  comparison.between_cells = 0.013;
  EXPECT_THAT(text_of(comparison),
              AllOf(HasSubstr("not equally busy: mean load average 1.00 in the base, 2.50 in"),
                    HasSubstr("Cells differ from run to run by 1.3 % more than")));
}

}  // namespace
}  // namespace assay
