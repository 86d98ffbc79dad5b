// The time left of runs whose starts take longer than their rows.
#include "study/time_left.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TimeLeft, NothingIsKnownBeforeTheFirstRow) {
  TimeLeft left;
  left.plan(0, true, 12, 1);
  EXPECT_FALSE(left.seconds());
}

TEST(TimeLeft, AStartIsNotSpreadOverTheRowsThatFollow) {
  TimeLeft left;
  left.plan(0, true, 101, 1);
  left.row(0, true, 1, 60);
  left.row(0, false, 1, 0.1);
  EXPECT_NEAR(*left.seconds(), 99 * 0.1, 1e-9) << "99 rows, and no start";
}

TEST(TimeLeft, StartsToComeTakeAsLongAsTheLastOfTheirCell) {
  TimeLeft left;
  for (int process = 0; process < 3; ++process) {
    left.plan(0, true, 1, 1);
    left.plan(1, true, 1, 1);
  }
  left.row(0, true, 1, 60);
  EXPECT_NEAR(*left.seconds(), 2 * 60 + 3 * 60, 1e-9) << "a cell not seen yet is as the others";
  left.row(1, true, 1, 2);
  EXPECT_NEAR(*left.seconds(), 2 * 60 + 2 * 2, 1e-9);
  left.row(0, true, 1, 10);
  EXPECT_NEAR(*left.seconds(), 1 * 10 + 2 * 2, 1e-9) << "the second finds the first one's kernels";
}

TEST(TimeLeft, RowsWeighAsTheirCellsCost) {
  TimeLeft left;
  left.plan(0, false, 10, 1);
  left.plan(1, false, 10, 5);
  left.row(0, false, 1, 2);
  EXPECT_NEAR(*left.seconds(), 2 * (9 + 50), 1e-9);
}

TEST(TimeLeft, UnitsThatWontComeTakeNothing) {
  TimeLeft left;
  left.plan(0, true, 5, 1);
  left.plan(0, true, 5, 1);
  left.row(0, true, 1, 30);
  left.row(0, false, 1, 1);
  left.drop(0, true, 5, 1);
  EXPECT_NEAR(*left.seconds(), 3, 1e-9);
}

}  // namespace
}  // namespace assay
