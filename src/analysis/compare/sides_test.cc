// Two sides of one bundle: pairs, and verdicts on bundles made by code.
#include "analysis/compare/sides.h"

#include <gmock/gmock.h>

#include <cmath>

#include "analysis/contrast/units.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
              ElementsAre(HasSubstr("missing: eager on prefill, gpt2-25m, 200 tokens")));
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
