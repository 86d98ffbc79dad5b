// Policies judged on the half of the rows that they weren't made of.
#include "routing/validation.h"

#include <gmock/gmock.h>

#include "routing/routed_bundle.h"

namespace assay {
namespace {

Optimism optimism_of(RoutedBundle& bundle) {
  const Route route = bundle.route();
  EXPECT_TRUE(route.validation);
  return route.validation.value_or(Optimism());
}

TEST(OutOfSample, HalvesThatChooseAlikeShowNoOptimism) {
  RoutedBundle bundle(two_routed_arms(0.7));
  const Optimism optimism = optimism_of(bundle);
  EXPECT_EQ(optimism.absent, "");
  EXPECT_EQ(optimism.unit, "process");
  EXPECT_EQ(optimism.units, 4);
  EXPECT_EQ(optimism.strata, 3);
  EXPECT_EQ(optimism.differ, 0);
  EXPECT_NEAR(optimism.optimism, 0, 1e-12);
  EXPECT_NEAR(optimism.in_sample, 0.7, 0.01);
  EXPECT_NEAR(optimism.out_of_sample, 0.7, 0.01);
  ASSERT_TRUE(optimism.interval);
  EXPECT_NEAR(optimism.interval->low, 0, 1e-9);
}

TEST(OutOfSample, AnArmThatWinsInOneHalfAloneIsOptimistic) {
  RoutedStudy study = two_routed_arms(1.25);
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) {
    const bool second_half = row.process.value_or(0) % 2 == 1;
    if (row.arm == "fast" && second_half) *row.latency_ms *= 0.6;
  }
  const Optimism optimism = optimism_of(bundle);
  EXPECT_EQ(optimism.differ, 3);
  // 12.5 ms of 10 in the half that takes eager, 7.5 in the one that takes fast.
  EXPECT_NEAR(optimism.in_sample, std::sqrt(0.75), 0.01);
  EXPECT_NEAR(optimism.out_of_sample, std::sqrt(1.25), 0.01);
  EXPECT_NEAR(optimism.optimism, std::sqrt(1.25 / 0.75) - 1, 0.02);
  ASSERT_TRUE(optimism.interval);
  EXPECT_GT(optimism.interval->low, 0);
}

TEST(OutOfSample, ALossInTheOtherHalfIsCounted) {
  RoutedBundle bundle(two_routed_arms(0.7));
  bundle.made.lose(bundle.cell("fast", 30), 39, RowStatus::kCrash, "SIGSEGV");  // of process 7
  const Optimism optimism = optimism_of(bundle);
  EXPECT_EQ(optimism.broken, 1);
  EXPECT_EQ(optimism.strata, 2);
}

TEST(OutOfSample, OneProcessIsSplitByItsBlocksAndOneBlockNotAtAll) {
  RoutedStudy study = two_routed_arms(0.7);
  study.processes = 0;
  study.warmup = 0;
  RoutedBundle blocks(study);
  EXPECT_EQ(optimism_of(blocks).unit, "block");
  EXPECT_EQ(optimism_of(blocks).units, 20);
  for (Row& row : blocks.made.raw().rows) row.block = 0;
  EXPECT_EQ(optimism_of(blocks).absent, "the study has one process and one block");
}

}  // namespace
}  // namespace assay
