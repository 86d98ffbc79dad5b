// Findings about rankings that hang on a few samples and about pooling: each on a bundle with its
// defect, and on one without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/of_kind.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two arms of nearly one speed, and no sample that stands out.
struct Pair {
  explicit Pair(double static_ms) : bundle(41) {
    eager = bundle.add({.arm = "eager", .noise = 0.005});
    compiled = bundle.add({.arm = "static", .mean_ms = static_ms, .noise = 0.005});
  }
  SyntheticBundle bundle;
  std::string eager, compiled;
};

TEST(Sensitivity, ARankingThatTheLargestSampleDecidesIsNamedWithIt) {
  Pair pair(9.7);
  EXPECT_THAT(of_kind(pair.bundle, "ranking_sensitive"), IsEmpty());
  pair.bundle.row(pair.compiled, 12).latency_ms = 30;
  const auto found = of_kind(pair.bundle, "ranking_sensitive");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "eager");
  EXPECT_THAT(found[0].text, HasSubstr("faster than static by the mean"));
  EXPECT_THAT(found[0].text, HasSubstr("but slower without the largest (9.9"));
  EXPECT_THAT(found[0].text, HasSubstr("and without the five largest"));
  EXPECT_THAT(found[0].text, HasSubstr("and without 5 % at each end"));
  EXPECT_THAT(found[0].rows.at(pair.compiled), testing::Contains(12));
}

TEST(Sensitivity, FiveLargeSamplesAreSeenWhereOneIsNot) {
  Pair pair(9.7);
  for (const int i : {3, 9, 14, 20, 26}) pair.bundle.row(pair.compiled, i).latency_ms = 13;
  const auto found = of_kind(pair.bundle, "ranking_sensitive");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("but slower without the five largest"));
  EXPECT_THAT(found[0].text, testing::Not(HasSubstr("without the largest (")));
}

TEST(Sensitivity, MeansAreRecomputedWithoutTheFirstSample) {
  Pair pair(9.7);
  pair.bundle.row(pair.compiled, 0).latency_ms = 25;
  const auto found = of_kind(pair.bundle, "ranking_sensitive");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("but slower without the first sample"));
  EXPECT_THAT(found[0].rows.at(pair.compiled), testing::Contains(0));
}

TEST(Sensitivity, ASureRankingSurvivesATail) {
  Pair pair(8);
  pair.bundle.row(pair.compiled, 12).latency_ms = 30;
  EXPECT_THAT(of_kind(pair.bundle, "ranking_sensitive"), IsEmpty());
}

TEST(Pooling, AModelThatOneArmHasAloneIsNamedWithItsRows) {
  SyntheticBundle bundle(42);
  bundle.add({.arm = "eager"});
  bundle.add({.arm = "static"});
  EXPECT_THAT(of_kind(bundle, "unpaired_models"), IsEmpty());
  const auto large = bundle.add({.arm = "static", .mean_ms = 100, .model = "llama-7b"});
  const auto found = of_kind(bundle, "unpaired_models");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_THAT(found[0].text, HasSubstr("llama-7b only on this arm"));
  ASSERT_EQ(found[0].rows.size(), 1u);
  EXPECT_EQ(found[0].rows.at(large).size(), 30u);
}

TEST(Pooling, APooledFigureThatSaysTheOppositeOfEveryStratumIsNamed) {
  SyntheticBundle bundle(43);
  const auto add = [&](const std::string& arm, const std::string& scenario, double ms, int rows) {
    return bundle.add({.arm = arm, .scenario = scenario, .mean_ms = ms, .repetitions = rows});
  };
  // static is faster on both, and has most of its rows where everything is slow.
  add("eager", "single_micro", 10, 60);
  add("eager", "single_long", 100, 10);
  add("static", "single_micro", 9, 10);
  const auto heavy = add("static", "single_long", 90, 60);
  const auto found = of_kind(bundle, "simpson");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_THAT(found[0].text, HasSubstr("but the 2 strata combined by -"));
  EXPECT_THAT(found[0].text, HasSubstr("the pooled mean differs by +"));
  EXPECT_EQ(found[0].rows.at(heavy).size(), 60u);
}

TEST(Pooling, PoolsThatAgreeWithTheirStrataAreNoFinding) {
  SyntheticBundle bundle(44);
  for (const auto& [scenario, ms] : {std::pair{"single_micro", 10.0}, {"single_long", 100.0}}) {
    bundle.add({.arm = "eager", .scenario = scenario, .mean_ms = ms});
    bundle.add({.arm = "static", .scenario = scenario, .mean_ms = 0.9 * ms});
  }
  EXPECT_THAT(of_kind(bundle, "simpson"), IsEmpty());
}

TEST(Pooling, ALongStratumThatOutweighsTheOthersIsAReversalToo) {
  SyntheticBundle bundle(45);
  for (const auto& [scenario, ms, factor] :
       {std::tuple{"single_micro", 1.0, 0.7}, {"single_short", 3.0, 0.7}, {"stress", 400.0, 1.1}}) {
    bundle.add({.arm = "eager", .scenario = scenario, .mean_ms = ms});
    bundle.add({.arm = "static", .scenario = scenario, .mean_ms = factor * ms});
  }
  const auto found = of_kind(bundle, "simpson");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rows.size(), 6u);
}

}  // namespace
}  // namespace assay
