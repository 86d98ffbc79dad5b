// The dip on samples whose dip is known, its reference values, and its error rates on shapes of one
// mode.
#include "stats/estimates/dip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace assay::stats {
namespace {

TEST(Dip, OfSamplesWhoseDipIsKnown) {
  const std::vector<double> even = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_NEAR(dip(even), 0.05, 1e-15) << "as near to one mode as ten values can be";
  const std::vector<double> two = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  EXPECT_NEAR(dip(two), 0.25, 1e-15) << "two atoms of a half: the largest there is";
  const std::vector<double> uneven = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_NEAR(dip(uneven), 0.1, 1e-15) << "half the share of the smaller";
  const std::vector<double> same = {3, 3, 3, 3};
  EXPECT_NEAR(dip(same), 0.125, 1e-15);
}

// The reference is the R package diptest by way of its Python port, 0.12.0.
TEST(Dip, AgreesWithTheReference) {
  const std::vector<double> moods = {1.0, 1.1, 1.15, 1.3, 1.32, 1.4, 4.0, 4.2, 4.25, 4.5, 4.8, 5.1};
  EXPECT_NEAR(dip(moods), 0.17567567567567569, 1e-12);
  std::vector<double> squares;
  for (int i = 1; i <= 25; ++i) squares.push_back(i * i % 17 + 0.01 * i);
  std::ranges::sort(squares);
  EXPECT_NEAR(dip(squares), 0.10096106048053023, 1e-12);
}

double uniform(Random& random) {
  return random.uniform();
}
double exponential(Random& random) {
  return -std::log(1 - random.uniform());
}

// The share of samples of a shape that are called bimodal at 5 %.
template <typename Draw>
double share_called(size_t n, const Draw& draw) {
  constexpr int kDipTrials = 2000;
  DipTest test;
  Random random(7, n);
  int called = 0;
  for (int trial = 0; trial < kDipTrials; ++trial) {
    std::vector<double> sample(n);
    for (double& x : sample) x = draw(random);
    std::ranges::sort(sample);
    called += test.p(dip(sample), n) < 0.05;
  }
  return static_cast<double>(called) / kDipTrials;
}

TEST(Dip, ErrsNoMoreOftenThanItSays) {
  for (const size_t n : {10u, 30u, 100u}) {
    EXPECT_NEAR(share_called(n, uniform), 0.05, 0.015) << n;
    EXPECT_LE(share_called(n, exponential), 0.03) << n;
  }
  EXPECT_NEAR(share_called(1000, uniform), 0.05, 0.02) << "beyond the sizes that are simulated";
}

TEST(Dip, ItsTailGoesOnBelowWhatSimulationsReach) {
  DipTest test;
  double before = 1;
  for (double dip = 0.05; dip < 0.25; dip += 0.01) {
    const double p = test.p(dip, 30);
    EXPECT_LE(p, before);
    EXPECT_GT(p, 0);
    before = p;
  }
  EXPECT_LT(before, 1e-6);
  EXPECT_EQ(test.p(0.25, 3), 1);
}

}  // namespace
}  // namespace assay::stats
