// Two-way analysis of variance: unbalanced cells against statsmodels, and from published figures.
#include "stats/hypotheses/anova.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/random.h"
#include "stats/distributions/standard_normal.h"

namespace assay::stats {
namespace {

// Unbalanced 2 x 3: cells of 3, 2, 4, 2, 3 and 2 values.
const std::vector<size_t> kFactorA = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
const std::vector<size_t> kFactorB = {0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 0, 1, 1, 1, 2, 2};
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
  const auto cells = *anova_cells(kFactorA, kFactorB, kY);
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
  auto cells = *anova_cells(kFactorA, kFactorB, kY);
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

TEST(Anova, RefusesACellWhoseVarianceIsNoNumber) {
  const std::vector<size_t> a = {0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<size_t> b = {0, 0, 1, 1, 0, 0, 1, 1};
  for (const double far : {1e200, 1e-170}) {
    const std::vector<double> y = {far, 3 * far, 1, 2, 3, 4, 5, 7};
    EXPECT_FALSE(anova_cells(a, b, y)) << far;
  }
  EXPECT_TRUE(anova_cells(a, b, std::vector<double>{1, 1, 1, 2, 3, 4, 5, 7}));
}

// A table with gaps and cells of very different size.
std::vector<AnovaCell> uneven_cells(size_t levels_a, size_t levels_b, double share) {
  std::vector<AnovaCell> cells;
  Random random(levels_a * 1000 + levels_b);
  for (size_t a = 0; a < levels_a; ++a) {
    for (size_t b = 0; b < levels_b; ++b) {
      const bool kept = a == b % levels_a || b == a % levels_b || b + 1 == levels_b;
      if (!kept && random.uniform() > share) continue;
      const auto n = static_cast<int64_t>(std::exp(random.uniform() * 12) + 1);
      const double mean = 5 + std::sin(static_cast<double>(a)) + 0.1 * static_cast<double>(b);
      cells.push_back({a, b, {n, mean + standard_normal(random), 1.5}});
    }
  }
  return cells;
}

// SS of the means of one factor's levels, the other left out.
double alone(const std::vector<AnovaCell>& cells, size_t AnovaCell::*level) {
  std::map<size_t, std::pair<double, double>> sums;
  double n = 0;
  double sum = 0;
  for (const AnovaCell& cell : cells) {
    const auto size = static_cast<double>(cell.values.n);
    sums[cell.*level].first += size;
    sums[cell.*level].second += size * cell.values.mean;
    n += size;
    sum += size * cell.values.mean;
  }
  double squares = 0;
  for (const auto& [key, of_level] : sums) {
    const double distance = of_level.second / of_level.first - sum / n;
    squares += of_level.first * distance * distance;
  }
  return squares;
}

// a alone and b given a, b alone and a given b: both add up to the part that the two explain
// together. 3,000 levels beside a few, and hundreds beside hundreds, with nine of ten combinations
// empty.
TEST(Anova, OfManyLevelsAddsUpInEitherOrder) {
  for (const auto& cells : {uneven_cells(3, 4, 1), uneven_cells(3000, 2, 0.5),
                            uneven_cells(3, 3000, 0.7), uneven_cells(300, 200, 0.1)}) {
    const auto table = two_way_anova(cells, SumsOfSquares::kTypeII);
    ASSERT_TRUE(table);
    const double first = alone(cells, &AnovaCell::a) + table->b.sum_of_squares;
    const double second = alone(cells, &AnovaCell::b) + table->a.sum_of_squares;
    EXPECT_NEAR(first, second, first * 1e-11);
    EXPECT_NEAR(first + table->interaction.sum_of_squares + table->residual_sum_of_squares,
                table->total_sum_of_squares, first * 1e-11);
    EXPECT_EQ(table->a.df + table->b.df + table->interaction.df + 1,
              static_cast<double>(cells.size()));
  }
}

TEST(Anova, KeepsTheDigitsOfCellsOfVeryDifferentSize) {
  // Two cells with nearly all values, and two that alone tell the factors apart: a's effect of 1
  // shows only where a small one stands beside a large one.
  const int64_t large = 1'000'000'000'000;
  const std::vector<AnovaCell> cells = {
      {0, 0, {large, 0, 1}}, {1, 1, {large, 3, 1}}, {0, 1, {1, 2, 0}}, {1, 0, {1, 1, 0}}};
  const auto table = two_way_anova(cells, SumsOfSquares::kTypeII);
  ASSERT_TRUE(table);
  EXPECT_NEAR(table->a.sum_of_squares, 2, 1e-9);  // by both small cells, each weighing 1
  EXPECT_NEAR(table->interaction.sum_of_squares, 0, 1e-9);
}

TEST(Anova, SaysWhatIsTooLarge) {
  std::vector<AnovaCell> cells;
  for (size_t level = 0; level < 4000; ++level) {
    cells.push_back({level, level, {2, 1, 1}});
    cells.push_back({level, (level + 1) % 4000, {2, 1, 1}});
  }
  EXPECT_TRUE(anova_is_too_large(cells));
  EXPECT_FALSE(two_way_anova(cells, SumsOfSquares::kTypeII));
  EXPECT_FALSE(anova_is_too_large(uneven_cells(3000, 2, 1)));
}

}  // namespace
}  // namespace assay::stats
