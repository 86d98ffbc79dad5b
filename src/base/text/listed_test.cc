#include "base/text/listed.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using Parts = std::vector<std::string>;

TEST(Listed, AndStandsBeforeTheLastAlone) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed(Parts{"a"}), "a");
  EXPECT_EQ(listed(Parts{"a", "b"}), "a and b");
  EXPECT_EQ(listed(Parts{"a", "b", "c", "d"}), "a, b, c and d");
}

TEST(Listed, CountsWhatHasNoRoom) {
  const Parts parts = {"a", "b", "c", "d"};
  EXPECT_EQ(listed(parts, 4), "a, b, c and d");
  EXPECT_EQ(listed(parts, 3), "a, b and 2 more");
  EXPECT_EQ(listed(parts, 2), "a and 3 more");
  EXPECT_EQ(listed(parts, 1), "4 more");
}

TEST(Listed, TheFirstOnesStandWithoutAnAnd) {
  const Parts parts = {"a", "b", "c", "d"};
  EXPECT_EQ(first_listed({}, 3), "");
  EXPECT_EQ(first_listed(parts, 4), "a, b, c, d");
  EXPECT_EQ(first_listed(parts, 3), "a, b, c and 1 more");
  EXPECT_EQ(first_listed(parts, 1), "a and 3 more");
}

}  // namespace
}  // namespace assay
