// Rounds of whole, interrupted and resumed runs, and of cells that were repeated more often.
#include "analysis/contrast/common_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using Spans = std::vector<std::vector<UnitSpan>>;

TEST(CommonRounds, StrataOfAWholeRunShareAll) {
  const CommonRounds rounds =
      common_rounds(Spans{{{0, 3, 0}, {4, 7, 1}}, {{0, 3, 0}, {5, 7, 1}}});  // one row is cold
  EXPECT_TRUE(rounds.whole);
  EXPECT_EQ(rounds.count, 2u);
}

TEST(CommonRounds, AsManyRoundsAreNotTheSameRounds) {
  const CommonRounds rounds = common_rounds(Spans{{{0, 3, 0}, {4, 7, 1}}, {{4, 7, 0}, {8, 11, 1}}});
  EXPECT_FALSE(rounds.whole);
  EXPECT_EQ(rounds.count, 3u);
  EXPECT_THAT(rounds.of[0], ElementsAre(0, 1));
  EXPECT_THAT(rounds.of[1], ElementsAre(1, 2));
}

TEST(CommonRounds, AnInterruptedRunLacksTheLast) {
  const CommonRounds rounds = common_rounds(Spans{{{0, 3, 0}, {4, 7, 1}}, {{0, 3, 0}}});
  EXPECT_FALSE(rounds.whole);
  EXPECT_THAT(rounds.of[1], ElementsAre(0));
}

TEST(CommonRounds, AResumeSplitsARoundOfOneStratum) {
  const CommonRounds rounds =
      common_rounds(Spans{{{0, 3, 0}, {4, 5, 1}, {6, 7, 2}}, {{0, 3, 0}, {4, 7, 1}, {8, 11, 2}}});
  EXPECT_FALSE(rounds.whole);
  EXPECT_THAT(rounds.of[0], ElementsAre(0, 1, 1));
  EXPECT_THAT(rounds.of[1], ElementsAre(0, 1, 2));
}

TEST(CommonRounds, CellsThatRepeatMoreOftenAreToldByTheirProcesses) {
  const CommonRounds rounds = common_rounds(Spans{{{0, 3, 0}, {4, 7, 1}}, {{0, 5, 0}, {6, 9, 1}}});
  EXPECT_TRUE(rounds.whole);
  EXPECT_EQ(rounds.count, 2u);
}

}  // namespace
}  // namespace assay
