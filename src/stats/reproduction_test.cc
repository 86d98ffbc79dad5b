// Bands at their limits, and what an interval leaves open.
#include "stats/reproduction.h"

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

TEST(Reproduction, EqualValuesHaveAnIntervalOfNoWidthOrNone) {
  const Reproduction equal = reproduction(std::vector{100.0, 100.0, 100.0}, 100, {});
  EXPECT_EQ(equal.band, ReproductionBand::kStrongMatch);
  EXPECT_EQ(equal.worst, ReproductionBand::kStrongMatch);
}

}  // namespace
}  // namespace assay::stats
