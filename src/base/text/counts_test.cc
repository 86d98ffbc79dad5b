// Numbers as people read them.
#include "base/text/counts.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Counts, OfOneAreSingular) {
  EXPECT_EQ(counted(size_t{1}, "kind of warning", "kinds of warnings"), "1 kind of warning");
  EXPECT_EQ(counted(size_t{2}, "kind of warning", "kinds of warnings"), "2 kinds of warnings");
}

TEST(Counts, NeedNotBeWhole) {
  EXPECT_EQ(counted_about(1, "CPU"), "1 CPU");
  EXPECT_EQ(counted_about(1.5, "CPU"), "1.5 CPUs");
  EXPECT_EQ(counted_about(16, "CPU"), "16 CPUs");
}

TEST(Counts, HaveThreeDigits) {
  EXPECT_EQ(format_count(512), "512");
  EXPECT_EQ(format_count(25'019'904), "25.0M");
  EXPECT_EQ(format_count(1.24e9), "1.24G");
}

}  // namespace
}  // namespace assay
