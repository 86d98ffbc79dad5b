// Lost rows by process.
#include "analysis/rows/losses.h"

#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// Six rows of two processes, all of which are lost.
Losses losses_of_dead(bool named, RowStatus status) {
  SyntheticBundle made(1);
  const std::string cell = made.add({.arm = "eager", .repetitions = 6, .processes = 2});
  for (int64_t i = 0; i < 6; ++i) {
    made.lose(cell, i, status, "");
    if (!named) made.row(cell, i).process.reset();
  }
  const Bundle bundle = made.build();
  return losses_of(group_rows(bundle, {"eager"})->groups.at(0));
}

TEST(Losses, ProcessesThatDieCountOnceEach) {
  const Losses named = losses_of_dead(true, RowStatus::kCrash);
  EXPECT_EQ(named.died, 2);
  EXPECT_EQ(named.processes.size(), 2u);
}

TEST(Losses, ProcessesThatNeverStartedCountOnceABlock) {
  const Losses nameless = losses_of_dead(false, RowStatus::kCrash);
  EXPECT_EQ(nameless.lost, 6);
  EXPECT_EQ(nameless.died, 6) << "not one process that lost all rows";
  EXPECT_EQ(nameless.processes.size(), 6u);
  EXPECT_EQ(losses_of_dead(false, RowStatus::kError).died, 0);
}

TEST(Losses, RowsThatTellNoProcessCountAsOfOne) {
  SyntheticBundle made(1);
  const std::string cell = made.add({.arm = "eager", .repetitions = 6});
  made.lose(cell, 2, RowStatus::kCrash, "");
  const Bundle bundle = made.build();
  const Losses losses = losses_of(group_rows(bundle, {"eager"})->groups.at(0));
  EXPECT_EQ(losses.died, 1);
  EXPECT_EQ(losses.processes.size(), 1u);
}

}  // namespace
}  // namespace assay
