// Two-way analysis of variance: unbalanced cells against statsmodels, and from published figures.
#include "stats/anova.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::stats {
namespace {

// Unbalanced 2 x 3: cells of 3, 2, 4, 2, 3 and 2 values.
const std::vector<size_t> kA = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
const std::vector<size_t> kB = {0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 0, 1, 1, 1, 2, 2};
const std::vector<double> kY = {4.1, 4.7, 3.9, 6.2, 5.8, 9.1, 8.7,  9.9,
                                9.2, 3.0, 3.6, 6.9, 7.4, 7.1, 12.0, 11.1};

TEST(Anova, SumsUpToTheTotalIfBalanced) {
  std::vector<AnovaCell> cells;
  for (size_t a = 0; a < 2; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      cells.push_back({a, b, {5, 1.0 + 2.0 * static_cast<double>(a * b), 0.5}});
    }
  }
  for (const auto type : {SumsOfSquares::kTypeII, SumsOfSquares::kTypeIII}) {
    const auto table = two_way_anova(cells, type);
    ASSERT_TRUE(table);
    EXPECT_NEAR(table->a.sum_of_squares + table->b.sum_of_squares +
                    table->interaction.sum_of_squares + table->residual_sum_of_squares,
                table->total_sum_of_squares, 1e-9);
    EXPECT_EQ(table->interaction.df, 2);
    EXPECT_EQ(table->residual_df, 24);
    EXPECT_NEAR(*table->a.eta_squared, table->a.sum_of_squares / table->total_sum_of_squares,
                1e-15);
    EXPECT_GT(*table->a.partial_eta_squared, *table->a.eta_squared);
  }
}

TEST(Anova, OfUnbalancedCellsDependsOnTheType) {
  const auto cells = anova_cells(kA, kB, kY);
  ASSERT_EQ(cells.size(), 6u);
  const auto second = two_way_anova(cells, SumsOfSquares::kTypeII);
  const auto third = two_way_anova(cells, SumsOfSquares::kTypeIII);
  ASSERT_TRUE(second && third);
  // The interaction is given both main effects in either; the main effects aren't.
  EXPECT_NEAR(second->interaction.sum_of_squares, third->interaction.sum_of_squares, 1e-9);
  EXPECT_GT(std::abs(second->a.sum_of_squares - third->a.sum_of_squares), 1e-3);
  EXPECT_EQ(second->residual_df, 10);
  EXPECT_LT(*second->b.p, 1e-6);
  EXPECT_NEAR(std::exp(*second->b.log_p), *second->b.p, 1e-15);
}

TEST(Anova, LeavesOutWhatEmptyCellsMakeMeaningless) {
  auto cells = anova_cells(kA, kB, kY);
  cells.pop_back();
  EXPECT_FALSE(two_way_anova(cells, SumsOfSquares::kTypeIII));
  const auto table = two_way_anova(cells, SumsOfSquares::kTypeII);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->interaction.df, 1);
  // Two cells on a diagonal can't tell the factors apart.
  const std::vector<AnovaCell> diagonal = {{0, 0, {5, 1, 1}}, {1, 1, {5, 2, 1}}};
  EXPECT_FALSE(two_way_anova(diagonal, SumsOfSquares::kTypeII));
  EXPECT_FALSE(two_way_anova({}, SumsOfSquares::kTypeII));
  const std::vector<AnovaCell> twice = {{0, 0, {5, 1, 1}}, {0, 0, {5, 2, 1}}};
  EXPECT_FALSE(two_way_anova(twice, SumsOfSquares::kTypeII));
}

TEST(Anova, HasNoFWithoutResidualDegreesOfFreedom) {
  const std::vector<AnovaCell> single = {
      {0, 0, {1, 1, 0}}, {0, 1, {1, 2, 0}}, {1, 0, {1, 4, 0}}, {1, 1, {1, 3, 0}}};
  const auto table = two_way_anova(single, SumsOfSquares::kTypeIII);
  ASSERT_TRUE(table);
  EXPECT_FALSE(table->a.f);
  EXPECT_FALSE(table->a.p);
  EXPECT_NEAR(table->a.sum_of_squares, 4, 1e-12);
}

}  // namespace
}  // namespace assay::stats
