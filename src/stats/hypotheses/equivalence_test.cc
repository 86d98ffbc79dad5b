// The interval lies within the margins exactly where both tests say so.
#include "stats/hypotheses/equivalence.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::stats {
namespace {

TEST(Equivalence, HasBothTestsOfWhichTostGivesTheLarger) {
  const StandardError error{0.254, 146.7};
  const auto found = equivalence(0.197, error, -0.5, 0.5, 0.05);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->above_low.p, 0.003501, 1e-4);
  EXPECT_NEAR(found->below_high.p, 0.1174, 1e-4);
  EXPECT_DOUBLE_EQ(found->larger().p, tost(0.197, error, -0.5, 0.5)->p);
  EXPECT_FALSE(found->holds(0.05));
  EXPECT_GT(found->interval->high, 0.5);
}

TEST(Equivalence, OfARatioTouchesTheMarginsWherePIsAlpha) {
  const Moments a{12, 10.3, 0.09};
  const Moments b{9, 10, 0.25};
  const auto found = equivalence_of_ratio(a, b, 0.9, 1.1, 0.05);
  ASSERT_TRUE(found && found->interval);
  EXPECT_DOUBLE_EQ(found->estimate, 1.03);
  const auto at_ends =
      equivalence_of_ratio(a, b, found->interval->low, found->interval->high, 0.05);
  EXPECT_NEAR(at_ends->above_low.p, 0.05, 1e-9);
  EXPECT_NEAR(at_ends->below_high.p, 0.05, 1e-9);
  EXPECT_DOUBLE_EQ(found->larger().p, tost_ratio(a, b, 0.9, 1.1)->p);
}

TEST(Equivalence, OfARatioHasNoIntervalIfTheDivisorMayBeZero) {
  const auto found = equivalence_of_ratio({5, 10, 1}, {5, 1, 16}, 0.5, 2, 0.05);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->interval);
  EXPECT_FALSE(equivalence_of_ratio({5, 10, 1}, {5, -1, 16}, 0.5, 2, 0.05));
}

}  // namespace
}  // namespace assay::stats
