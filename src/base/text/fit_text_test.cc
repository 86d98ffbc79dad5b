// Widths as a terminal has them.
#include "base/text/fit_text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(FitText, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u00b5s"), 2u);
  EXPECT_EQ(display_width("\u7f16\u8bd1"), 4u) << "Chinese";
  EXPECT_EQ(display_width("\uff76\u30ab"), 3u) << "a narrow and a wide kana";
  EXPECT_EQ(display_width("e\u0301"), 1u) << "an accent that joins its letter";
  EXPECT_EQ(display_width("a\xff"), 2u) << "a byte that is no character";
}

TEST(FitText, TakesWholeCharacters) {
  EXPECT_EQ(bytes_of_columns("abc", 2), 2u);
  EXPECT_EQ(bytes_of_columns("\u7f16\u8bd1", 3), 3u) << "the second one doesn't fit";
  EXPECT_EQ(bytes_of_columns("abc", 9), 3u);
}

TEST(FitText, ShortensToTheWidth) {
  EXPECT_EQ(shortened("compiled-dynamic", 10), "comp...mic");
  for (size_t width = 4; width < 24; ++width) {
    EXPECT_LE(display_width(shortened("\u7f16\u8bd1\u7f16\u8bd1 static \u7f16\u8bd1\u7f16", width)),
              width);
  }
}

}  // namespace
}  // namespace assay
