// Two sides of one bundle: pairs by hand, and verdicts on bundles made by code.
#include "analysis/compare/sides.h"

#include <gmock/gmock.h>

#include <cmath>

#include "analysis/compare/pairs.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A process with the base's and the candidate's times.
PairedProcess process(int64_t number, std::vector<double> base, std::vector<double> cand) {
  return {number, std::move(base), std::move(cand)};
}

// x = {11, 22}, y = {10, 20} of one process and {33}, {30} of the other: R = 1.1 exactly, and no
// process is off it.
TEST(PairedRatio, OfProportionalTimesIsTheirRatioWithoutError) {
  const std::vector processes = {process(0, {10, 20}, {11, 22}), process(1, {30}, {33})};
  for (const ProcessFigure figure : {ProcessFigure::kMean, ProcessFigure::kMedian}) {
    const auto ratio = paired_ratio(processes, figure);
    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->log_ratio(), std::log(1.1), 1e-12);
    const auto error = ratio->error();
    EXPECT_TRUE(!error || error->value < 1e-12);
  }
}

// Means of 18 and 15: R = 1.2. Process 0 is off by 39 - 1.2 * 30 = 3, process 1 by 33 - 36 = -3.
// se(R) = sqrt(2 / 1 * (9 + 9)) / 60 = 0.1, and of ln R: 0.1 / 1.2, with 1 degree of freedom.
TEST(PairedRatio, OfSidesThatAreApartHasTheErrorOfAClusteredRatio) {
  const std::vector processes = {process(0, {10, 20}, {15, 24}), process(1, {15, 15}, {16, 17})};
  const auto ratio = paired_ratio(processes, ProcessFigure::kMean);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->log_ratio(), std::log(1.2), 1e-12);
  ASSERT_TRUE(ratio->error());
  EXPECT_NEAR(ratio->error()->value, 0.1 / 1.2, 1e-12);
  EXPECT_EQ(ratio->error()->df, 1);
}

// The same sums, but the first pair's candidate is the faster one: t of ln R is that of the
// difference of means, 3 with an error of sqrt(2 / 1 * (9 + 9)) / 4.
TEST(PairedRatio, OfSidesThatOverlapHasTheErrorOfTheDifference) {
  const std::vector processes = {process(0, {10, 20}, {9, 30}), process(1, {15, 15}, {16, 17})};
  const auto ratio = paired_ratio(processes, ProcessFigure::kMean);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->log_ratio(), std::log(1.2), 1e-12);
  ASSERT_TRUE(ratio->error());
  EXPECT_NEAR(ratio->log_ratio() / ratio->error()->value, 3 / 1.5, 1e-12);
}

// Six of 200 calls of one side took a hundred times their time: t of the difference is sqrt(6), and
// by an error relative to the side's own mean it would be 4.5.
TEST(PairedRatio, AFewStoppedCallsAreNoProof) {
  std::vector<PairedProcess> processes;
  for (int64_t p = 0; p < 20; ++p) {
    PairedProcess& one = processes.emplace_back(process(p, {}, {}));
    for (int64_t i = 0; i < 10; ++i) {
      const double wobble = 0.01 * static_cast<double>((3 * i + p) % 7);
      one.base_ms.push_back(1 + wobble);
      one.cand_ms.push_back(i == 0 && p < 6 ? 100 : 1.06 - wobble);
    }
  }
  const auto ratio = paired_ratio(processes, ProcessFigure::kMean);
  ASSERT_TRUE(ratio);
  ASSERT_TRUE(ratio->error());
  EXPECT_LT(ratio->log_ratio() / ratio->error()->value, 3);
}

TEST(PairedRatio, OfTypicalCallsIsNotMovedByAStoppedCall) {
  const std::vector processes = {process(0, {10, 10, 10}, {11, 11, 5000}),
                                 process(1, {10, 10, 4000}, {11, 11, 11})};
  const auto ratio = paired_ratio(processes, ProcessFigure::kMedian);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->log_ratio(), std::log(1.1), 1e-12);
}

// Two cells with values +a and -a of the same two processes: together they cancel, where the
// processes are the same ones; of one sign they add up.
TEST(PairedRatio, CellsOfTheSameProcessesCountTogether) {
  const PairedRatio up{{0, 1}, {0.02, -0.02}, 1};
  const PairedRatio down{{0, 1}, {-0.02, 0.02}, 1};
  const PairedRatio both[] = {up, up};
  const PairedRatio against[] = {up, down};
  EXPECT_NEAR(combine_ratios(both).error()->value, up.error()->value, 1e-12);
  EXPECT_FALSE(combine_ratios(against).error());
}

TEST(PairUp, LeavesOutWhatOneSideLostAndJoinsProcessesThatShareASide) {
  SyntheticBundle made(1);
  const auto base = made.add({.arm = "eager@base", .repetitions = 9, .processes = 3});
  const auto cand = made.add({.arm = "eager@cand", .repetitions = 9, .processes = 3});
  made.lose(cand, 1, RowStatus::kCrash, "SIGSEGV");
  made.row(cand, 2).process = 5;  // one that replaced the lost one
  const Bundle bundle = made.build();
  const auto samples = group_rows(bundle, {});
  ASSERT_TRUE(samples);
  const auto processes =
      pair_up(*samples, Units(*samples, true), samples->groups[0], samples->groups[1]);
  ASSERT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes[0].base_ms.size(), 2u)
      << "process 0 of the base with 0 and 5 of the candidate";
  EXPECT_EQ(processes[1].base_ms.size(), 3u);
  EXPECT_EQ(split_pairs(processes).size(), 8u);
}

// Both sides on two prompt lengths; the candidate takes `slower` times as long on the longer one.
// Neighbouring repetitions share a drift of half their time, and one call in fifty is stopped.
struct Sides {
  explicit Sides(uint64_t seed, double slower = 1, int64_t processes = 20) : bundle(seed) {
    bundle.raw().manifest["study"]["sides"] = {{"base", "old/assay"}, {"cand", "new/assay"}};
    for (const auto& [scenario, tokens] :
         {std::pair<std::string, int>{"single_micro", 10}, {"single_long", 200}}) {
      for (const std::string side : {"@base", "@cand"}) {
        SyntheticCell cell{.arm = "eager" + side, .scenario = scenario, .prompt_tokens = tokens};
        cell.noise = 0.03;
        cell.repetitions = 800;
        cell.processes = processes;
        cell.process_shift = processes > 1 ? 0.005 : 0;
        cell.drift = 0.5;
        cell.spike_rate = 0.02;
        if (side == "@cand" && tokens == 200) cell.mean_ms *= slower;
        cells.push_back(bundle.add(cell));
      }
    }
  }
  Comparison compared(CompareOptions options = {.margin = kSidesMargin}) {
    auto result = compare_sides(bundle.build(), options);
    EXPECT_TRUE(result) << result.error().message;
    return *std::move(result);
  }
  SyntheticBundle bundle;
  std::vector<std::string> cells;  // both sides of each scenario
};

TEST(Sides, OnePercentIsFoundInItsCellAloneAndNothingInEqualPrograms) {
  int found = 0;
  int alarms = 0;
  constexpr int kTrials = 20;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    const Comparison slower = Sides(seed, 1.012).compared();
    ASSERT_EQ(slower.cells.size(), 2u);
    found += slower.cells[1].alarm() ? 1 : 0;
    alarms += slower.cells[0].alarm() ? 1 : 0;
    alarms += Sides(seed + 100).compared().failures(true).empty() ? 0 : 1;
  }
  EXPECT_GE(found, kTrials * 8 / 10);
  EXPECT_LE(alarms, 2);
}

TEST(Sides, SaysWhatItComparedAndByWhat) {
  Sides sides(3, 1.03);
  const Comparison comparison = sides.compared();
  EXPECT_TRUE(comparison.in_one_run);
  EXPECT_EQ(comparison.base_name, "old/assay");
  EXPECT_EQ(comparison.cand_name, "new/assay");
  ASSERT_EQ(comparison.combined.size(), 1u);
  EXPECT_EQ(comparison.combined[0].strata, 2);
  EXPECT_NEAR(comparison.combined[0].ratio, std::sqrt(1.03), 0.01);
  ASSERT_FALSE(comparison.failures(true).empty());
  EXPECT_THAT(comparison.failures(true).back(), HasSubstr("slower: eager on prefill"));
  EXPECT_EQ(comparison_to_json(comparison)["cells"][0]["judged_by"], "pairs of processes");
}

TEST(Sides, OnePairOfProcessesIsNotDecidedUnlessAllowed) {
  Sides sides(4, 1.1, 1);
  const Comparison undecided = sides.compared();
  EXPECT_EQ(undecided.undecided(), 2);
  EXPECT_THAT(undecided.failures(true), IsEmpty());
  const Comparison allowed = sides.compared({.margin = 0.005, .allow_single_process = true});
  EXPECT_EQ(allowed.undecided(), 0);
  EXPECT_EQ(allowed.failures(true).size(), 2u) << "the cell and both together";
}

TEST(Sides, LostRowsOutputAndMissingCellsAreSeen) {
  Sides sides(5);
  sides.bundle.raw().parity[sides.cells[1]] = {{"passed", false}};
  for (int process = 0; process < 12; ++process) {
    sides.bundle.lose(sides.cells[3], 40 * process, RowStatus::kCrash, "SIGSEGV");
  }
  const auto failures = sides.compared().failures(true);
  EXPECT_THAT(failures, testing::Contains(HasSubstr("output: eager on prefill")));
  EXPECT_THAT(failures, testing::Contains(HasSubstr("crash rate: eager on prefill")));

  Sides missing(6);
  std::erase_if(missing.bundle.raw().rows,
                [&](const Row& row) { return row.cell_id == missing.cells[3]; });
  EXPECT_THAT(missing.compared().failures(false),
              ElementsAre(HasSubstr("missing: eager on prefill, gpt2-25m, single_long")));
}

TEST(Sides, ABundleOfOneSideIsRefused) {
  SyntheticBundle one(7);
  one.add({.arm = "eager"});
  const auto refused = compare_sides(one.build(), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("expected a bundle that `assay compare --run`"));
}

}  // namespace
}  // namespace assay
