// Bands at their limits, and the bands that an interval leaves open.
#include "stats/estimates/reproduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::stats {
namespace {

std::string_view band(std::vector<double> means, double published) {
  return band_name(reproduction(means, published, {}).band);
}

TEST(Reproduction, BandsAreByTheDistanceOnEitherSide) {
  EXPECT_EQ(band({101.9}, 100), "strong_match");
  EXPECT_EQ(band({98.1}, 100), "strong_match");
  EXPECT_EQ(band({102.1}, 100), "match");
  EXPECT_EQ(band({95.1}, 100), "match");
  EXPECT_EQ(band({94}, 100), "weak");
  EXPECT_EQ(band({114.9}, 100), "weak");
  EXPECT_EQ(band({116}, 100), "none");
  EXPECT_EQ(band({1}, 100), "none");
  EXPECT_EQ(band({}, 100), "null");
}

TEST(Reproduction, TheIntervalSaysWhichBandsStayOpen) {
  const Reproduction one = reproduction(std::vector{104.0}, 100, {});
  EXPECT_FALSE(one.interval);
  EXPECT_EQ(one.worst, ReproductionBand::kMatch);
  // Mean 104, sd 2, n 4: t(3) 3.1824 * 2 / 2 = 3.18.
  const double spread = 2 / std::sqrt(4.0 / 3);
  const Reproduction four =
      reproduction(std::vector{104 - spread, 104 - spread, 104 + spread, 104 + spread}, 100, {});
  ASSERT_TRUE(four.interval);
  EXPECT_NEAR(four.interval->low, 1.0082, 1e-4);
  EXPECT_NEAR(four.interval->high, 1.0718, 1e-4);
  EXPECT_EQ(four.band, ReproductionBand::kMatch);
  EXPECT_EQ(four.best, ReproductionBand::kStrongMatch);
  EXPECT_EQ(four.worst, ReproductionBand::kWeak);
}

TEST(Reproduction, AnIntervalAroundTheTargetLeavesTheBestBandOpen) {
  // Mean 103, t(1) 12.706 * 6 = 76: both ends are farther from 100 than any band.
  const Reproduction wide = reproduction(std::vector{97.0, 109.0}, 100, {});
  EXPECT_EQ(wide.band, ReproductionBand::kMatch);
  EXPECT_EQ(wide.best, ReproductionBand::kStrongMatch);
  EXPECT_EQ(wide.worst, ReproductionBand::kNone);
}

TEST(Reproduction, EqualValuesShowNoError) {
  const Reproduction equal = reproduction(std::vector{104.0, 104.0, 104.0}, 100, {});
  EXPECT_EQ(equal.band, ReproductionBand::kMatch);
  EXPECT_FALSE(equal.interval) << "they may be rounded";
  EXPECT_EQ(equal.worst, ReproductionBand::kMatch);
  EXPECT_TRUE(reproduction(std::vector{104.0, 104.0, 104.1}, 100, {}).interval);
}

TEST(Reproduction, AFigureOnALimitHasTheBand) {
  for (const double on_limit : {98.0, 102.0}) EXPECT_EQ(band({on_limit}, 100), "strong_match");
  for (const double on_limit : {95.0, 105.0}) EXPECT_EQ(band({on_limit}, 100), "match");
  for (const double on_limit : {85.0, 115.0}) EXPECT_EQ(band({on_limit}, 100), "weak");
}

// Each band by a figure that just has it, and by one beside it that doesn't.
TEST(Reproduction, EachBandEndsWhereTheNextBegins) {
  const BandLimits limits{.strong = 0.01, .match = 0.1, .weak = 0.5};
  const auto of = [&](double mean) {
    return band_name(reproduction(std::vector{mean}, 64, limits).band);
  };
  for (const double sign : {-1.0, 1.0}) {
    EXPECT_EQ(of(64 * (1 + sign * 0.0099)), "strong_match");
    EXPECT_EQ(of(64 * (1 + sign * 0.0101)), "match");
    EXPECT_EQ(of(64 * (1 + sign * 0.0999)), "match");
    EXPECT_EQ(of(64 * (1 + sign * 0.1001)), "weak");
    EXPECT_EQ(of(64 * (1 + sign * 0.5)), "weak") << "the limit itself";
    EXPECT_EQ(of(64 * (1 + sign * 0.5001)), "none");
  }
}

}  // namespace
}  // namespace assay::stats
