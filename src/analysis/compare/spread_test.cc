// The scatter of a comparison's cells, held against figures worked out by hand.
#include "analysis/compare/spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

CellRatio cell(size_t group, double log_ratio, double error = 0.01, double df = 1e9) {
  return {group, log_ratio, {error, df}};
}

// Two cells of one group, both with error e, at -x and +x: Q = 2 x^2 / e^2, one of which is
// expected, and Q grows by 1 / e^2 for each unit of variance.
TEST(Spread, OfTwoCellsIsTheirVarianceBeyondTheirErrors) {
  const auto spread = spread_of(std::vector{cell(0, -0.03), cell(0, 0.03)});
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->square, 2 * 0.03 * 0.03 - 0.01 * 0.01, 1e-9);
  EXPECT_NEAR(spread->raw, 2 * 0.03 * 0.03, 1e-9);
  EXPECT_EQ(spread->df, 1);
}

TEST(Spread, AnErrorOfFewProcessesExplainsMore) {
  const auto spread = spread_of(std::vector{cell(0, -0.03, 0.01, 4), cell(0, 0.03, 0.01, 4)});
  EXPECT_NEAR(spread->square, 2 * 0.03 * 0.03 - 2 * 0.01 * 0.01, 1e-9);
}

TEST(Spread, AnArmThatChangedAsAWholeIsNoScatter) {
  const std::vector cells = {cell(0, 0.2), cell(0, 0.2), cell(1, 0), cell(1, 0)};
  const auto spread = spread_of(cells);
  EXPECT_EQ(spread->square, 0);
  EXPECT_NEAR(spread->df, 2, 1e-9);
}

TEST(Spread, TheCellThatIsJudgedIsLeftOut) {
  const std::vector cells = {cell(0, 0.2), cell(0, 0), cell(0, 0)};
  EXPECT_GT(spread_of(cells)->square, 0.01);
  EXPECT_EQ(spread_of(cells, 0)->square, 0);
}

TEST(Spread, IsAbsentWhereNoGroupHasTwoCells) {
  EXPECT_FALSE(spread_of({}));
  EXPECT_FALSE(spread_of(std::vector{cell(0, 0.1), cell(1, 0.2)}));
  EXPECT_FALSE(spread_of(std::vector{cell(0, 0.1), cell(0, 0.2)}, 1));
}

// A cell that is a hundred times as precise as the others decides alone: with one other group of
// two, that is hardly more than one degree of freedom.
TEST(Spread, DegreesOfFreedomAreThoseOfTheCellsThatCount) {
  std::vector<CellRatio> cells = {cell(0, 0.01, 1e-4), cell(0, -0.01, 1e-4)};
  for (size_t group = 1; group < 6; ++group) {
    cells.push_back(cell(group, 0.01));
    cells.push_back(cell(group, -0.01));
  }
  EXPECT_LT(spread_of(cells)->df, 2.1);
}

TEST(Spread, WidensAnErrorBySatterthwaite) {
  const stats::StandardError error{0.03, 18};
  EXPECT_EQ(with_spread(error, std::nullopt, 1).value, 0.03);
  EXPECT_EQ(with_spread(error, Spread{0, 1, 5}, 1).value, 0.03);
  const Spread spread{0.0016, 0.0020, 4};  // counts as 0.0016 (1 + 1/4) = 0.002
  const auto widened = with_spread(error, spread, 1);
  EXPECT_NEAR(widened.value, std::sqrt(0.0029), 1e-12);
  EXPECT_NEAR(widened.df, 0.0029 * 0.0029 / (0.0009 * 0.0009 / 18 + 0.002 * 0.002 / 4), 1e-9);
  EXPECT_NEAR(with_spread(error, spread, 4).value, std::sqrt(0.0014), 1e-12);
}

}  // namespace
}  // namespace assay
