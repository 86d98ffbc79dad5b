// The findings about a sample's shape: two modes found, and how seldom they are claimed of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/of_kind.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Every `stride`-th repetition of the second arm takes `factor` times as long.
SyntheticBundle two_modes(double factor, int stride, double noise, int64_t repetitions = 30) {
  SyntheticBundle bundle(51);
  bundle.add({.arm = "eager", .noise = noise, .repetitions = repetitions});
  const auto cell = bundle.add({.arm = "static", .noise = noise, .repetitions = repetitions});
  for (int64_t i = 0; i < repetitions; i += stride) *bundle.row(cell, i).latency_ms *= factor;
  return bundle;
}

TEST(Bimodal, HalfAndHalfIsNamedWithBothModes) {
  SyntheticBundle bundle = two_modes(1.5, 2, 0.03);
  const auto found = of_kind(bundle, "bimodal");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_NEAR(found[0].size, 0.5, 0.05);
  EXPECT_THAT(found[0].text, HasSubstr(" ms in 15 rows (50 %) and 1"));
  ASSERT_EQ(found[0].rows.size(), 1u);
  EXPECT_EQ(found[0].rows.begin()->second.size(), 15u);
}

TEST(Bimodal, AFifthOfTheRowsAndTenOfThemAreEnough) {
  SyntheticBundle fifth = two_modes(2, 5, 0.03, 60);
  const auto found = of_kind(fifth, "bimodal");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rows.begin()->second.size(), 12u) << "the rarer mode's";
  SyntheticBundle ten = two_modes(1.5, 2, 0.02, 10);
  EXPECT_EQ(of_kind(ten, "bimodal").size(), 1u);
}

TEST(Bimodal, OneOrTwoRowsAreNoMode) {
  for (const int slow : {1, 2, 3}) {
    SyntheticBundle bundle(55);
    const auto cell = bundle.add({.arm = "eager", .noise = 0, .repetitions = 10});
    for (int64_t i = 0; i < 10; ++i) {
      *bundle.row(cell, i).latency_ms *= i % 4 == 0 && i / 4 < slow ? 2 : 1;
    }
    EXPECT_EQ(of_kind(bundle, "bimodal").size(), slow < 3 ? 0u : 1u) << slow << " of 10 rows";
  }
}

TEST(Bimodal, ModesWithoutNoiseAreNamedToo) {
  SyntheticBundle bundle = two_modes(2, 2, 0);
  const auto found = of_kind(bundle, "bimodal");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(
      found[0].text,
      HasSubstr("two modes, with medians of 10.00 ms in 15 rows (50 %) and 20.00 ms in 15"));
}

TEST(Bimodal, StepsOfAClockAreNoModes) {
  SyntheticBundle bundle(52);
  const auto cell = bundle.add({.arm = "eager", .noise = 0.08, .repetitions = 60});
  for (int i = 0; i < 60; ++i) {
    Row& row = bundle.row(cell, i);
    row.latency_ms = std::round(*row.latency_ms);
  }
  EXPECT_THAT(of_kind(bundle, "bimodal"), IsEmpty());
}

TEST(Bimodal, PromptsOfTwoLengthsAreNoModesOfOne) {
  SyntheticBundle bundle = two_modes(3, 2, 0.02);
  for (Row& row : bundle.raw().rows) {
    if (row.repetition % 2 != 0) continue;
    row.prompt_id = "1";
    row.prompt_tokens = row.padded_tokens = 40;
  }
  EXPECT_THAT(of_kind(bundle, "bimodal"), IsEmpty());
}

TEST(Bimodal, AChangeOfLevelIsToldOnce) {
  for (const int64_t processes : {0, 6, 10}) {
    for (const double factor : {1.1, 1.5, 3.0}) {
      SyntheticBundle bundle(53);
      const auto cell = bundle.add({.arm = "eager", .noise = 0.01, .processes = processes});
      for (int i = 15; i < 30; ++i) *bundle.row(cell, i).latency_ms *= factor;
      EXPECT_GE(of_kind(bundle, "level_change").size(), 1u) << processes << " " << factor;
      EXPECT_THAT(of_kind(bundle, "bimodal"), IsEmpty()) << processes << " " << factor;
    }
  }
}

// Bundles of ten groups of one mode each of which some group is called bimodal.
double share_of_bundles(const SyntheticCell& like, int trials = 100) {
  int called = 0;
  for (int trial = 0; trial < trials; ++trial) {
    SyntheticBundle bundle(static_cast<uint64_t>(trial) + 7000);
    for (int group = 0; group < 10; ++group) {
      SyntheticCell cell = like;
      cell.arm = group % 2 == 0 ? "eager" : "static";
      cell.scenario = fmt::format("s{}", group / 2);
      bundle.add(cell);
    }
    called += !of_kind(bundle, "bimodal").empty();
  }
  return static_cast<double>(called) / trials;
}

// 5 %, and two standard errors of 100 trials.
TEST(Bimodal, OneModeIsSeldomCalledTwo) {
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 0.05}), 0.09);
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 1}), 0.09) << "skewed: log-normal noise of 100 %";
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 0.05, .spike_rate = 0.05}), 0.09);
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 0.02, .drift = 0.3}), 0.09);
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 0.05, .autocorrelation = 0.6}), 0.09);
  EXPECT_LE(share_of_bundles({.arm = "", .noise = 0.05, .repetitions = 200}, 50), 0.11);
}

TEST(Constant, ALatencyThatNeverVariesIsNamed) {
  SyntheticBundle bundle(54);
  bundle.add({.arm = "eager", .noise = 0.01});
  bundle.add({.arm = "static", .noise = 0});
  const auto found = of_kind(bundle, "constant_latency");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arm, "static");
  EXPECT_THAT(found[0].text, HasSubstr("all 30 warm rows took exactly 10.00 ms"));
}

}  // namespace
}  // namespace assay
