// Wilson intervals against SciPy.
#include "stats/samples/intervals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::stats {
namespace {

TEST(Stretched, GrowsAboutTheEstimate) {
  const Interval ratio = stretched({0.5, 2}, 1, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 0.25);
  EXPECT_DOUBLE_EQ(ratio.high, 4);
  EXPECT_GT(stretched({9, 12}, 10, 40).low, 0);
}

TEST(ExpOf, TakesBothEnds) {
  const Interval ratio = exp_of({-1, 0.5});
  EXPECT_DOUBLE_EQ(ratio.low, std::exp(-1));
  EXPECT_DOUBLE_EQ(ratio.high, std::exp(0.5));
}

TEST(Wilson, AgreesWithSciPy) {
  // st.binomtest(k, n).proportion_ci(method="wilson")
  const auto few = wilson_interval(3, 30);
  EXPECT_NEAR(few->low, 0.034599888747334176, 1e-12);
  EXPECT_NEAR(few->high, 0.2562108257918408, 1e-12);
  const auto most = wilson_interval(24, 30);
  EXPECT_NEAR(most->low, 0.6269430358685175, 1e-12);
  EXPECT_NEAR(most->high, 0.9049489282271013, 1e-12);
  const auto narrow = wilson_interval(3, 30, 0.9);
  EXPECT_NEAR(narrow->low, 0.04067696700923086, 1e-12);
  EXPECT_NEAR(narrow->high, 0.22550247949084856, 1e-12);
}

TEST(Wilson, ReachesTheEndsExactly) {
  EXPECT_EQ(wilson_interval(0, 30)->low, 0);
  EXPECT_NEAR(wilson_interval(0, 30)->high, 0.11351339317396875, 1e-12);
  EXPECT_EQ(wilson_interval(30, 30)->high, 1);
  EXPECT_NEAR(wilson_interval(1, 1)->low, 0.20654931437723745, 1e-12);
}

TEST(Wilson, IsAbsentWithoutTrials) {
  EXPECT_FALSE(wilson_interval(0, 0));
}

}  // namespace
}  // namespace assay::stats
