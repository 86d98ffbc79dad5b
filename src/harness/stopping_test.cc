// Optional stopping against an interval computed by hand.
#include "harness/stopping.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

TEST(RelativeInterval, IsTheTIntervalOfTheMean) {
  // mean 10, sd 1, n 3: 4.302653 / sqrt(3) / 10
  const std::vector<double> sample{9, 10, 11};
  ASSERT_TRUE(relative_interval(sample));
  EXPECT_NEAR(*relative_interval(sample), 0.2484138, 1e-6);
  EXPECT_FALSE(relative_interval(std::vector<double>{1}));
}

TEST(WantsMore, UntilNarrowOrAtTheLimit) {
  const std::vector<double> sample{9, 10, 11};
  EXPECT_TRUE(wants_more({100, 0.24}, sample, 3));
  EXPECT_FALSE(wants_more({100, 0.25}, sample, 3));
  EXPECT_FALSE(wants_more({3, 0.01}, sample, 3));
  EXPECT_FALSE(wants_more({100, 0.01}, std::vector<double>{}, 3));
}

}  // namespace
}  // namespace assay
