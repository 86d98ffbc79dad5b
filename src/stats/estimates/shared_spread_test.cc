// Variances that help one another: which are shared, and which stay a sample's own.
#include "stats/estimates/shared_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stats/distributions/distributions.h"

namespace assay::stats {
namespace {

KeyedDeviations three(double first, double second) {
  return {{0, 1, 2}, {first, second, -first - second}};
}

double variance_of(double first, double second) {
  const double third = first + second;
  return (first * first + second * second + third * third) / 2;
}

TEST(SharedSpread, ASampleAloneHasItsOwn) {
  const KeyedDeviations alone = three(-1, 0);
  const auto found = share_variances({&alone, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found[0].variance, 1);
  EXPECT_DOUBLE_EQ(found[0].df, 2);
}

TEST(SharedSpread, ValuesAllAlikeShareNothing) {
  const std::vector<KeyedDeviations> samples = {
      {{0}, {0.0}}, three(0, 0), three(1, -1), three(-1, 0.5)};
  const auto found = share_variances(samples);
  EXPECT_EQ(found[0].df, 0);
  EXPECT_EQ(found[1].variance, 0);
  EXPECT_GT(found[3].df, 2);
}

KeyedDeviations two(double value) {
  return {{0, 1}, {value, -value}};
}

TEST(SharedSpread, TwoValuesShareWhereNoSampleStandsOut) {
  std::vector<KeyedDeviations> samples = {two(1),    two(-0.7), two(0.2),  two(-1.3), two(0.9),
                                          two(-0.4), two(1.1),  two(-0.8), two(0.5),  two(-1)};
  auto found = share_variances(samples);
  EXPECT_GT(found[2].variance, 2 * 0.2 * 0.2);
  EXPECT_GT(found[2].df, 3);
  samples.push_back(two(40));
  found = share_variances(samples);
  EXPECT_TRUE(found[10].stands_out);
  EXPECT_DOUBLE_EQ(found[2].variance, 2 * 0.2 * 0.2) << "it may hide what the last one shows";
  EXPECT_DOUBLE_EQ(found[2].df, 1);
}

// Ten cells of three processes, none of which is slow in all of them.
std::vector<KeyedDeviations> ten_cells() {
  return {three(1, -0.2),  three(-0.3, 0.9), three(0.1, 0.2),  three(-1.4, 0.4), three(0.8, -0.9),
          three(-0.6, -1), three(0.2, 1.3),  three(1.1, -1.2), three(-0.5, 0.6), three(0.7, 1.6)};
}

TEST(SharedSpread, CellsThatSpreadAlikeShareTheirVariance) {
  const auto found = share_variances(ten_cells());
  EXPECT_GT(found[2].variance, 5 * variance_of(0.1, 0.2));
  EXPECT_GT(found[2].df, 4);
  EXPECT_DOUBLE_EQ(found[9].variance, variance_of(0.7, 1.6)) << "the largest keeps its own";
  EXPECT_DOUBLE_EQ(found[9].df, found[2].df);
}

TEST(SharedSpread, AProcessThatIsSlowInAllCellsIsToldOnce) {
  std::vector<KeyedDeviations> samples;
  for (const double size : {1.0, 0.7, 1.3, 0.9}) samples.push_back(three(size, -size / 4));
  EXPECT_DOUBLE_EQ(shared_part(samples), 1);
  for (const SharedVariance& one : share_variances(samples)) EXPECT_DOUBLE_EQ(one.df, 2);
}

TEST(SharedSpread, ACellThatStandsOutKeepsItsOwn) {
  std::vector<KeyedDeviations> samples = ten_cells();
  const auto before = share_variances(samples);
  samples.push_back(three(40, -20));
  const auto found = share_variances(samples);
  EXPECT_DOUBLE_EQ(found[10].variance, variance_of(40, -20));
  EXPECT_DOUBLE_EQ(found[10].df, 2);
  EXPECT_TRUE(found[10].stands_out);
  EXPECT_FALSE(found[9].stands_out);
  EXPECT_DOUBLE_EQ(found[2].variance, before[2].variance) << "as without it";
}

TEST(SharedSpread, OnlyUnitsTakenTogetherAreCorrelated) {
  const std::vector<KeyedDeviations> apart = {{{0, 1}, {1, -1}}, {{2, 3}, {1, -1}}};
  EXPECT_DOUBLE_EQ(shared_part(apart), 1) << "two pairs of processes rule nothing out";
  const std::vector<KeyedDeviations> many = {{{0, 1, 2, 3, 4}, {1, -1, 0, 2, -2}},
                                             {{5, 6, 7, 8, 9}, {1, -1, 0, 2, -2}}};
  EXPECT_DOUBLE_EQ(shared_part(many), std::sqrt(2.0 / (2 * 4)));
}

// SciPy 1.17: special.digamma, special.polygamma.
TEST(SharedSpread, DerivativesOfTheLogarithmOfGamma) {
  EXPECT_NEAR(digamma(0.5), -1.9635100260214235, 1e-14);
  EXPECT_NEAR(trigamma(0.5), 4.934802200544679, 1e-13);
  EXPECT_NEAR(tetragamma(0.5), -16.828796644234320, 1e-12);
}

}  // namespace
}  // namespace assay::stats
