// Tests what rows show of their blocks, one defect a test.
#include "analysis/contrast/blocks.h"

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/summary.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// Three arms of 20 repetitions, in whole blocks.
struct ThreeArms {
  ThreeArms() {
    for (const char* arm : {"eager", "static", "third"}) {
      cells.push_back(bundle.add({.arm = arm, .repetitions = 20}));
    }
  }
  Row& row(size_t arm, int64_t repetition) { return bundle.row(cells[arm], repetition); }
  Findings findings() {
    AnalysisOptions options;
    options.resamples = 200;
    return *analyze(bundle.build(), options, nullptr);
  }
  StratumBlocks blocks() { return findings().blocks.at(0); }

  SyntheticBundle bundle{3};
  std::vector<std::string> cells;
};

TEST(Blocks, ThatLackAnArmAreNotWholeAndLeaveOnlyThatArmsPairs) {
  ThreeArms arms;
  std::erase_if(arms.bundle.raw().rows, [&](const Row& row) {
    return row.cell_id == arms.cells[1] && row.repetition == 4;
  });
  const Findings findings = arms.findings();
  EXPECT_EQ(findings.blocks.at(0).state, BlockState::kWhole);
  EXPECT_EQ(findings.blocks.at(0).blocks, 20);
  EXPECT_EQ(findings.blocks.at(0).whole, 19);
  EXPECT_EQ(findings.contrasts.at(0).left_out, 1);
  EXPECT_EQ(findings.contrasts.at(1).left_out, 0);
}

// Optional stopping adds repetitions to the last block of one arm and then to that of another: they
// have the same numbers, and didn't run side by side.
TEST(Blocks, RepetitionsThatWereAddedToABlockLeaveThePair) {
  ThreeArms arms;
  for (const size_t arm : {0, 1}) {
    for (const int64_t r : {18, 19}) {
      arms.row(arm, r).block = 17;
      arms.row(arm, r).order_index += static_cast<int64_t>(arm) * 100'000;
    }
  }
  const Findings findings = arms.findings();
  EXPECT_EQ(findings.blocks.at(0).state, BlockState::kWhole);
  EXPECT_EQ(findings.blocks.at(0).whole, 17);
  const Contrast& contrast = findings.contrasts.at(0);
  EXPECT_EQ(contrast.units_arm, 17);
  EXPECT_EQ(contrast.left_out, 6) << "three of each arm";
  double ms[] = {0, 0};
  for (const size_t arm : {0, 1}) {
    for (int64_t r = 0; r < 17; ++r) ms[arm] += *arms.row(arm, r).latency_ms;
  }
  EXPECT_NEAR(contrast.ratio, ms[1] / ms[0], 1e-12);
  EXPECT_EQ(findings.latencies.at(0).n, 20) << "the arms' own figures keep all rows";
}

TEST(Blocks, WithMostRowsInOneBlockPairNothing) {
  ThreeArms arms;
  for (int64_t r = 10; r < 20; ++r) arms.row(1, r).block = 10;
  const Findings findings = arms.findings();
  EXPECT_EQ(findings.blocks.at(0).state, BlockState::kSeveral);
  EXPECT_FALSE(findings.contrasts.at(0).paired);
  EXPECT_EQ(findings.contrasts.at(0).units_arm, 20);
}

// Blocks are numbered within a cell, so that arms have the same numbers however they ran.
TEST(Blocks, OfArmsThatRanOneAfterTheOtherPairNothing) {
  ThreeArms arms;
  for (const size_t arm : {0, 1, 2}) {
    for (int64_t r = 0; r < 20; ++r) {
      arms.row(arm, r).order_index = static_cast<int64_t>(arm) * 20 + r;
    }
  }
  const Findings findings = arms.findings();
  EXPECT_EQ(findings.blocks.at(0).state, BlockState::kApart);
  EXPECT_EQ(findings.blocks.at(0).whole, 0);
  EXPECT_FALSE(findings.contrasts.at(0).paired);
}

TEST(Blocks, OfArmsThatTookTurnsByBlocksPairNothing) {
  ThreeArms arms;
  for (const size_t arm : {0, 1, 2}) {
    for (int64_t r = 0; r < 20; ++r) {
      arms.row(arm, r).block = 3 * r + static_cast<int64_t>(arm);
    }
  }
  EXPECT_EQ(arms.blocks().state, BlockState::kApart);
}

TEST(Blocks, OfDifferentRepetitionsPairNothing) {
  ThreeArms arms;
  for (int64_t r = 0; r < 20; ++r) arms.row(2, r).block = 19 - r;
  EXPECT_EQ(arms.blocks().state, BlockState::kSeveral);
}

TEST(Blocks, PairNothingWhereNobodySaysInWhichOrderTheRowsWereMeasured) {
  ThreeArms arms;
  arms.bundle.raw().manifest["study"].erase("order");
  const Findings findings = arms.findings();
  EXPECT_EQ(findings.blocks.at(0).state, BlockState::kOrderNotRecorded);
  EXPECT_FALSE(findings.contrasts.at(0).paired);
}

TEST(Blocks, OfAStratumSayNothingOfAnother) {
  ThreeArms arms;
  for (const char* arm : {"eager", "static"}) {
    arms.bundle.add(
        {.arm = arm, .scenario = "single_long", .prompt_tokens = 200, .repetitions = 20});
  }
  for (Row& row : arms.bundle.raw().rows) {
    if (row.prompt_tokens == 200) row.block = 0;
  }
  const Findings findings = arms.findings();
  ASSERT_EQ(findings.blocks.size(), 2u);
  EXPECT_EQ(findings.blocks[0].state, BlockState::kWhole);
  EXPECT_EQ(findings.blocks[1].state, BlockState::kSeveral);
  const auto of_static = [](const Contrast& c) { return c.arm == "static"; };
  const auto combined = std::ranges::find_if(findings.combined, of_static);
  ASSERT_NE(combined, findings.combined.end());
  EXPECT_FALSE(combined->paired);
  EXPECT_TRUE(combined->test);
  EXPECT_TRUE(combined->ratio_interval->contains(combined->ratio));
}

}  // namespace
}  // namespace assay
