// Several runs a side, and a history: worlds in which a whole run is slower by chance.
#include "analysis/compare/runs.h"

#include <gmock/gmock.h>

#include <cmath>

#include "analysis/compare/history.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// One arm on one prompt length, ten processes of ten rows. The whole run is `run` times as slow,
// which none of its processes shows.
Bundle run_of(uint64_t seed, double run, const std::string& code = "abc") {
  SyntheticBundle made(seed);
  made.add({.arm = "eager",
            .mean_ms = 10 * run,
            .noise = 0.01,
            .repetitions = 100,
            .processes = 10,
            .process_shift = 0.003});
  made.raw().manifest["identity"]["code_sha"] = code;
  Bundle bundle = made.build();
  bundle.folder = fmt::format("run{}", seed);
  return bundle;
}

// Runs that differ by 4 % (standard deviation) as a whole.
std::vector<Bundle> shifted_runs(uint64_t seed, size_t count, double slower = 1) {
  Random random(seed);
  std::vector<Bundle> runs;
  for (size_t i = 0; i < count; ++i) {
    runs.push_back(run_of(seed * 100 + i, slower * std::exp(0.04 * standard_normal(random))));
  }
  return runs;
}

Comparison compared(const std::vector<Bundle>& base, const std::vector<Bundle>& cand) {
  auto result = compare_runs(base, cand, {}, {});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

// Worked by hand: logarithms 0, 0.02 against 0.10, 0.14, so variances 0.0002 and 0.0008, error^2 =
// 0.0005.
TEST(Runs, TheRunIsTheUnit) {
  std::vector<Bundle> base;
  std::vector<Bundle> cand;
  for (const double log : {0.0, 0.02}) base.push_back(run_of(base.size(), std::exp(log)));
  for (const double log : {0.10, 0.14}) cand.push_back(run_of(10 + cand.size(), std::exp(log)));
  const Comparison comparison = compared(base, cand);
  ASSERT_EQ(comparison.cells.size(), 1u);
  const ComparedCell& cell = comparison.cells[0];
  EXPECT_NEAR(std::log(cell.ratio), 0.11, 0.005);
  ASSERT_TRUE(cell.error);
  EXPECT_NEAR(cell.error->value, std::sqrt(0.0005), 0.005);
  EXPECT_LE(cell.error->df, 2);
  EXPECT_EQ(cell.verdict, Verdict::kInconclusive) << "two runs a side tell little";
  EXPECT_EQ(comparison.base_runs, 2);
  EXPECT_EQ(comparison_to_json(comparison)["cells"][0]["judged_by"], "runs");
}

TEST(Runs, WhatShiftsAWholeRunIsNoRegressionAndARealOneIs) {
  int pair_alarms = 0;
  int run_alarms = 0;
  int found = 0;
  constexpr int kTrials = 20;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto base = shifted_runs(2 * seed, 5);
    const auto cand = shifted_runs(2 * seed + 1, 5);
    const auto slower = shifted_runs(2 * seed + 1, 5, 1.25);
    pair_alarms += compare(base[0], cand[0], {}, {})->failures(true).empty() ? 0 : 1;
    run_alarms += compared(base, cand).failures(true).empty() ? 0 : 1;
    found += compared(base, slower).failures(true).empty() ? 0 : 1;
  }
  EXPECT_GE(pair_alarms, 3) << "else this world is no test";
  EXPECT_LE(run_alarms, 2);
  EXPECT_GE(found, kTrials * 9 / 10);
}

// The side of one run is taken to vary as the other does: s^2 (1 + 1 / R), R - 1 degrees.
TEST(Runs, ASideOfOneRunTakesTheOthersSpread) {
  const auto base = shifted_runs(1, 6);
  const Comparison comparison = compared(base, {run_of(77, 1.0)});
  const ComparedCell& cell = comparison.cells.at(0);
  ASSERT_TRUE(cell.error);
  EXPECT_EQ(cell.error->df, 5);
  const Comparison turned = compared({run_of(77, 1.0)}, base);
  EXPECT_NEAR(turned.cells.at(0).error->value, cell.error->value, 1e-12);
  EXPECT_NEAR(turned.cells.at(0).ratio, 1 / cell.ratio, 1e-12);
}

TEST(Runs, OutputThatBrokeInOneRunAndLostRowsOfAnyCount) {
  const auto base = shifted_runs(3, 3);
  auto cand = shifted_runs(4, 3);
  cand[1].parity.begin()->second = {{"passed", false}};
  EXPECT_THAT(compared(base, cand).failures(true),
              testing::Contains(HasSubstr("output: eager on prefill")));
}

TEST(Runs, OfAnotherBuildWithinASideAreRefused) {
  const std::vector<Bundle> base = {run_of(1, 1), run_of(2, 1, "def")};
  const auto refused = compare_runs(base, base, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("code_sha: expected \"abc\", found \"def\""));
  EXPECT_TRUE(compare_runs(base, base, {}, {"code_sha"}));
}

History history_of(const std::vector<Bundle>& runs) {
  History history;
  for (const Bundle& run : runs) EXPECT_TRUE(history.add(run));
  return history;
}

const CellPlaces kCell = {{{Phase::kPrefill, "gpt2-25m", "single_micro", 0, 1}, "eager"}};

// Steps of 0.1, -0.1, 0.1 between four runs: the mean square step is 0.01, of which the processes
// explain next to nothing; 2 * 9 / 8 degrees of freedom.
TEST(History, TheSpreadIsThatOfNeighbouringRuns) {
  std::vector<Bundle> runs;
  for (const double log : {0.0, 0.1, 0.0, 0.1}) runs.push_back(run_of(runs.size(), std::exp(log)));
  const auto spread = history_of(runs).between(kCell, ProcessFigure::kMean);
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->raw, 0.01, 0.0005);
  EXPECT_NEAR(spread->square, 0.01, 0.0006);
  EXPECT_LT(spread->square, spread->raw);
  EXPECT_DOUBLE_EQ(spread->df, 18.0 / 8.0);
  runs.resize(2);
  EXPECT_FALSE(history_of(runs).between(kCell, ProcessFigure::kMean)) << "two runs are no history";
}

TEST(History, RunsThatDifferByTheirProcessesAloneShowNoSpread) {
  std::vector<Bundle> runs;
  double most = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) runs.push_back(run_of(seed, 1));
  for (const ProcessFigure figure : {ProcessFigure::kMean, ProcessFigure::kMedian}) {
    most = std::max(most, history_of(runs).between(kCell, figure)->square);
  }
  EXPECT_LT(std::sqrt(most / 2), 0.002);
}

TEST(History, AnAlarmHasToBeatWhatDiffersFromRunToRun) {
  int pair_alarms = 0;
  int history_alarms = 0;
  int found = 0;
  constexpr int kTrials = 20;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto runs = shifted_runs(3 * seed, 15);
    const History history = history_of(runs);
    const Bundle cand = shifted_runs(3 * seed + 1, 1)[0];
    const Bundle slower = shifted_runs(3 * seed + 1, 1, 1.35)[0];
    const auto fails = [&](const Bundle& run, const History* known) {
      const auto comparison = known ? compare_with_history(runs.back(), run, {}, {}, *known)
                                    : compare(runs.back(), run, {}, {});
      EXPECT_TRUE(comparison) << comparison.error().message;
      return !comparison->failures(true).empty();
    };
    pair_alarms += fails(cand, nullptr) ? 1 : 0;
    history_alarms += fails(cand, &history) ? 1 : 0;
    found += fails(slower, &history) ? 1 : 0;
  }
  EXPECT_GE(pair_alarms, 4) << "else this world is no test";
  EXPECT_LE(history_alarms, 2);
  EXPECT_GE(found, kTrials * 9 / 10);
}

TEST(History, TheComparisonSaysWhatItShows) {
  const History history = history_of(shifted_runs(1, 10));
  const auto comparison = compare_with_history(run_of(200, 1), run_of(201, 1), {}, {}, history);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->history_runs, 10);
  ASSERT_TRUE(comparison->cells.at(0).between_runs);
  EXPECT_NEAR(*comparison->cells[0].between_runs, 0.04, 0.03);
  EXPECT_THAT(comparison_to_json(*comparison)["cells"][0]["between_runs"], Not(Json(nullptr)));
}

TEST(History, BelongsWhatDiffersByItsCodeAlone) {
  EXPECT_THAT(unlike(run_of(1, 1), run_of(2, 1, "def"), {}), IsEmpty());
  Bundle other = run_of(2, 1);
  other.manifest["identity"]["device"] = "Another CPU";
  EXPECT_EQ(unlike(run_of(1, 1), other, {}), "another device");
  EXPECT_THAT(unlike(run_of(1, 1), other, {"device"}), IsEmpty());
}

}  // namespace
}  // namespace assay
