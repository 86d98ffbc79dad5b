#include "base/text/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Text, NearestWordFindsTypingErrorsOnly) {
  const std::vector<std::string> words = {"repetitions", "warmup", "phases"};
  EXPECT_EQ(nearest_word("repetitons", words), "repetitions");
  EXPECT_EQ(nearest_word("wamrup", words), "warmup");
  EXPECT_EQ(nearest_word("baseline", words), std::nullopt);
  EXPECT_EQ(nearest_hint("phase", words), " (did you mean \"phases\"?)");
  EXPECT_EQ(nearest_hint("zzz", words), "");
}

TEST(Text, Quantities) {
  EXPECT_EQ(format_bytes(320), "320 B");
  EXPECT_EQ(format_bytes(1.5e9), "1.50 GB");
  EXPECT_EQ(format_duration(0.045), "45 ms");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(7500), "2 h 05 min");
  EXPECT_EQ(format_significant(0.00123456), "0.001235");
  EXPECT_EQ(format_significant(12.3456), "12.35");
  EXPECT_EQ(format_significant(123456), "123456");
}

TEST(Text, CountsHaveTheirPlural) {
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(2, "row"), "2 rows");
  EXPECT_EQ(counted(1, "stratum", "strata"), "1 stratum");
  EXPECT_EQ(counted(3, "stratum", "strata"), "3 strata");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace assay
