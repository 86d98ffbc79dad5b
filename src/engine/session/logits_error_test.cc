// Figures of logits that are known by hand.
#include "engine/session/logits_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace assay::engine {
namespace {

// Logits of these probabilities, off by any constant.
std::vector<float> logits_of(const std::vector<double>& probabilities, double constant) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + constant));
  return logits;
}

TEST(LogitsError, EqualDistributionsHaveNone) {
  LogitsError error;
  add_position(logits_of({0.5, 0.25, 0.25}, 3), logits_of({0.5, 0.25, 0.25}, -40), 1, error);
  finish(error);
  EXPECT_NEAR(error.kl_mean, 0, 1e-5);
  EXPECT_NEAR(error.nll_mean, std::log(4), 1e-5);
  EXPECT_NEAR(error.nll_distance_mean, 0, 1e-5);
  EXPECT_EQ(error.same_choice, 1);
}

TEST(LogitsError, MeansAreOfPositions) {
  LogitsError error;
  add_position(logits_of({0.6, 0.4}, 0), logits_of({0.3, 0.7}, 0), 0, error);
  add_position(logits_of({0.75, 0.25}, 0), logits_of({0.5, 0.5}, 0), 1, error);
  finish(error);
  const double first = 0.6 * std::log(0.6 / 0.3) + 0.4 * std::log(0.4 / 0.7);
  const double second = 0.75 * std::log(0.75 / 0.5) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_EQ(error.positions, 2);
  EXPECT_NEAR(error.kl_mean, (first + second) / 2, 1e-6);
  EXPECT_NEAR(error.kl_most, std::max(first, second), 1e-6);
  EXPECT_NEAR(error.nll_change_mean, 0, 1e-6) << "the first lost a factor of 2, the second won one";
  EXPECT_NEAR(error.nll_distance_mean, std::log(2), 1e-6);
  EXPECT_EQ(error.same_choice, 1) << "of equals the first is chosen";
}

TEST(LogitsError, FiguresOfWhatIsNotFiniteAreNot) {
  LogitsError error;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add_position(std::vector<float>{0, 1}, std::vector<float>{nan, 1}, 0, error);
  finish(error);
  EXPECT_FALSE(std::isfinite(error.kl_mean));
}

}  // namespace
}  // namespace assay::engine
