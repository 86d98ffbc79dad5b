#include "report/plot/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace assay::plot {
namespace {

using testing::ElementsAre;

Scale scale_of(double low, double high, Scale::Start start = Scale::Start::kFree) {
  Extent extent;
  extent.add(low);
  extent.add(high);
  return Scale::of(extent, start);
}

std::vector<std::string> texts(const Scale& scale, size_t most = 5) {
  std::vector<std::string> found;
  for (const Tick& tick : scale.ticks(most)) found.push_back(tick.text);
  return found;
}

TEST(Extent, CountsFiniteNumbersAlone) {
  Extent extent;
  EXPECT_FALSE(extent.any());
  extent.add(std::numeric_limits<double>::quiet_NaN());
  extent.add(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(extent.any());
  extent.add(3);
  extent.add(-1);
  EXPECT_EQ(extent.low(), -1);
  EXPECT_EQ(extent.high(), 3);
}

TEST(Scale, IsLogarithmicBeyondADecade) {
  EXPECT_FALSE(scale_of(1, 10).logarithmic());
  EXPECT_TRUE(scale_of(1, 10.1).logarithmic());
  EXPECT_FALSE(scale_of(0, 1000).logarithmic()) << "0 has no logarithm";
  EXPECT_FALSE(scale_of(-5, 1000).logarithmic());
  EXPECT_FALSE(scale_of(1, 1000, Scale::Start::kZero).logarithmic()) << "bars begin at 0";
  EXPECT_FALSE(scale_of(1, 1000, Scale::Start::kLinear).logarithmic());
}

TEST(Scale, PutsValuesBetweenItsEnds) {
  for (const Scale& scale : {scale_of(2, 8), scale_of(1, 1000)}) {
    double last = -1;
    for (const double value : {2.0, 3.0, 5.0, 7.9}) {
      EXPECT_GT(scale.at(value), last);
      EXPECT_GE(scale.at(value), 0);
      EXPECT_LE(scale.at(value), 1);
      last = scale.at(value);
    }
  }
  EXPECT_NEAR(scale_of(1, 10000).at(100), 0.5, 1e-9);
  EXPECT_EQ(scale_of(1, 1000).at(0), 0) << "beyond the end: on it";
  EXPECT_EQ(scale_of(0, 4, Scale::Start::kZero).at(0), 0);
}

TEST(Scale, OneValueHasAScaleToo) {
  for (const double value : {0.0, 5.0, -3.0, 1e-12, 1e300}) {
    const Scale scale = scale_of(value, value);
    EXPECT_GE(scale.at(value), 0);
    EXPECT_LT(scale.at(value), 1) << value;
    EXPECT_FALSE(scale.ticks(5).empty()) << value;
  }
  EXPECT_FALSE(Scale::of(Extent()).ticks(5).empty());
}

TEST(Scale, TicksAreRoundAndNoMoreThanAskedFor) {
  EXPECT_THAT(texts(scale_of(0.82, 1.04)), ElementsAre("0.85", "0.90", "0.95", "1.00"));
  EXPECT_THAT(texts(scale_of(0, 100, Scale::Start::kZero)), ElementsAre("0", "50", "100"));
  EXPECT_THAT(texts(scale_of(1, 100), 7), ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_THAT(texts(scale_of(0.5, 2000)), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(texts(scale_of(25e6, 1500e6), 3), ElementsAre("100M", "1G"));
  EXPECT_THAT(texts(scale_of(0, 30000)), ElementsAre("0", "10k", "20k", "30k"));
  for (const auto& [low, high] : {std::pair{1e-9, 1e9}, {0.001, 0.0011}, {1e-7, 3e-7}}) {
    EXPECT_LE(scale_of(low, high).ticks(5).size(), 6u) << low;
    EXPECT_GE(scale_of(low, high).ticks(5).size(), 2u) << low;
  }
}

}  // namespace
}  // namespace assay::plot
