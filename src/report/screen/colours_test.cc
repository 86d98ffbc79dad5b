// Colours stand where the screen says something, and are all that is added.
#include "report/screen/colours.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/files/files.h"
#include "tests/support/places.h"

namespace assay {
namespace {

TEST(Colours, AddNothingButThemselves) {
  const auto screen = read_file(checked_out("tests/golden/screen.txt"));
  ASSERT_TRUE(screen);
  const std::string coloured = with_colours(*screen);
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9]*m"), ""), *screen);
  EXPECT_NE(coloured.find("\x1b[33mWhat voids or weakens this:\x1b[0m\n"), std::string::npos);
}

TEST(Colours, VerdictsOfTheTableAlone) {
  EXPECT_EQ(
      with_colours("an arm  faster\n-----  -------\nprefill  faster\nkv  undecided\nx  void\n\n"
                   "b  faster\n"),
      "an arm  faster\n-----  -------\nprefill  \x1b[32mfaster\x1b[0m\nkv  "
      "\x1b[33mundecided\x1b[0m\nx  \x1b[31mvoid\x1b[0m\n\nb  faster\n");
}

}  // namespace
}  // namespace assay
