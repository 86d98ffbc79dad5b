// Texts that end an answer, held back as long as they may begin.
#include "server/stop_strings.h"

#include <gtest/gtest.h>

namespace assay::server {
namespace {

TEST(StopStrings, HoldBackWhatMayBeginOne) {
  StopStrings stops({"abc", "b\n"});
  EXPECT_EQ(stops.push("xa"), "x");
  EXPECT_EQ(stops.push("b"), "");
  EXPECT_EQ(stops.push("d"), "abd");
  EXPECT_EQ(stops.push("ab"), "");
  EXPECT_EQ(stops.push("\nmore"), "a");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("abc"), "");
  EXPECT_EQ(stops.finish(), "");
  StopStrings open({"abc"});
  EXPECT_EQ(open.push("ab"), "");
  EXPECT_EQ(open.finish(), "ab");
}

}  // namespace
}  // namespace assay::server
