// Tests of proportions against SciPy, and their promised levels.
#include "stats/hypotheses/proportions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::stats {
namespace {

TEST(Fisher, AgreesWithSciPy) {
  // st.fisher_exact([[8, 2], [1, 5]]), Fisher's tea: [[3, 1], [1, 3]]
  EXPECT_NEAR(fisher_exact({8, 10}, {1, 6})->p, 0.03496503496503495, 1e-15);
  EXPECT_DOUBLE_EQ(*fisher_exact({8, 10}, {1, 6})->odds_ratio, 20);
  EXPECT_NEAR(fisher_exact({3, 4}, {1, 4}, Side::kGreater)->p, 0.24285714285714283, 1e-15);
}

TEST(Fisher, KeepsTheLogarithmBelowTheSmallestDouble) {
  const auto test = fisher_exact({2000, 2000}, {0, 2000});
  EXPECT_EQ(test->p, 0);
  // -ln C(4000, 2000) + ln 2
  const double expected = 2 * std::lgamma(2001) - std::lgamma(4001) + std::log(2);
  EXPECT_NEAR(test->log_p, expected, 1e-8);
  EXPECT_FALSE(test->odds_ratio);
}

TEST(Fisher, IsCertainWithoutSuccesses) {
  EXPECT_EQ(fisher_exact({0, 30}, {0, 30})->p, 1);
  EXPECT_FALSE(fisher_exact({0, 0}, {1, 3}));
  EXPECT_FALSE(fisher_exact({4, 3}, {1, 3}));
}

TEST(Unconditional, FindsMoreThanFisherInCrashRates) {
  // 5 of 30 repetitions lost against none: st.boschloo_exact([[5, 0], [25, 30]], "greater"),
  // st.fisher_exact
  const auto fisher = fisher_exact({5, 30}, {0, 30}, Side::kGreater);
  const auto boschloo = boschloo_exact({5, 30}, {0, 30}, Side::kGreater);
  EXPECT_NEAR(fisher->p, 0.02609277430865299, 1e-14);
  EXPECT_NEAR(boschloo->p, 0.013704203754964797, 1e-9);
  EXPECT_NEAR(boschloo->statistic, fisher->p, 1e-12);
  EXPECT_LT(barnard_exact({5, 30}, {0, 30}, Side::kGreater)->p, fisher->p);
}

TEST(Unconditional, IsExactForACoinEach) {
  // One try each: {1, 0} has the chance p (1 - p), at most 1/4.
  EXPECT_NEAR(boschloo_exact({1, 1}, {0, 1}, Side::kGreater)->p, 0.25, 1e-12);
  EXPECT_NEAR(barnard_exact({1, 1}, {0, 1}, Side::kTwo)->p, 0.5, 1e-12);
}

TEST(Unconditional, IsAbsentWhereItMeansNothing) {
  EXPECT_FALSE(barnard_exact({0, 5}, {0, 5}));
  EXPECT_FALSE(boschloo_exact({0, 0}, {0, 5}));
  EXPECT_FALSE(boschloo_exact({1, 5000}, {0, 5000}));
}

TEST(Newcombe, ContainsTheDifference) {
  // statsmodels: confint_proportions_2indep(5, 30, 0, 30, method="newcomb")
  const auto interval = newcombe_interval({5, 30}, {0, 30});
  EXPECT_NEAR(interval->low, 0.019729903514814295, 1e-9);
  EXPECT_TRUE(interval->contains(5.0 / 30));
  EXPECT_FALSE(newcombe_interval({0, 0}, {0, 30}));
}

}  // namespace
}  // namespace assay::stats
