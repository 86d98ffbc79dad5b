// Matches and refusals of patterns, and that none of them hangs.
#include "base/text/text_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TextPattern made(std::string_view pattern) {
  auto compiled = TextPattern::compile(pattern, "test");
  EXPECT_TRUE(compiled) << compiled.error().message;
  return std::move(compiled).value();
}

TEST(TextPattern, FindsNamedGroupsInTheirOrder) {
  const TextPattern pattern = made(R"(inference (\d+): (?<s>[\d.]+) sec.*?, (?<rate>[\d.]+) tok)");
  EXPECT_THAT(pattern.names(), ElementsAre("s", "rate"));
  const auto found = pattern.find_all(
      "Time for inference 1: 1.91 sec total, 104.6 tokens/sec\nTime for inference 2: 1.90 sec, "
      "105 tokens\n",
      10, 1);
  ASSERT_TRUE(found);
  using Match = TextPattern::Match;
  EXPECT_THAT(*found, ElementsAre(Match{"1.91", "104.6"}, Match{"1.90", "105"}));
  EXPECT_EQ(pattern.find_all("inference 1: 1 sec, 2 tok inference 1: 1 sec, 2 tok", 1, 1)->size(),
            1u);
}

TEST(TextPattern, LinesEndAsProgressBarsEndThem) {
  const TextPattern pattern = made("^(?<x>\\d+)$");
  EXPECT_EQ(pattern.find_all("1\r2\r\n3\nx4", 10, 1)->size(), 3u);
}

TEST(TextPattern, AGroupThatTakesNoPartIsAbsent) {
  const auto found = made("(?<a>1)|(?<b>2)").find_all("2", 10, 1);
  EXPECT_THAT(*found, ElementsAre(TextPattern::Match{std::nullopt, "2"}));
}

TEST(TextPattern, GroupsOfOneNameAreOne) {
  const TextPattern pattern = made("(?J)(?<a>1)|(?<a>2)");
  EXPECT_THAT(pattern.names(), ElementsAre("a"));
  EXPECT_THAT(*pattern.find_all("21", 10, 1),
              ElementsAre(TextPattern::Match{"2"}, TextPattern::Match{"1"}));
}

TEST(TextPattern, EmptyMatchesAndAnyBytesEnd) {
  EXPECT_EQ(made("(?<a>x*)").find_all("yyy", 100, 1)->size(), 4u);
  EXPECT_EQ(made("(?<a>a)\\K|b(?=(?<c>a))").find_all("aba", 100, 1)->size(), 3u);
  const std::string bytes("\xff\x00\x80 7 tok\xfe", 10);
  EXPECT_THAT(*made("(?<n>\\d) tok").find_all(bytes, 100, 1), ElementsAre(TextPattern::Match{"7"}));
}

TEST(TextPattern, ADisasterEndsAtItsDeadline) {
  for (const char* pattern :
       {"^(?<a>(x+)+)+[yz]", "(?<a>(x|xx|x*)*[yz])", "(?<a>.*.*.*.*.*[yz])"}) {
    const int64_t start = monotonic_now_ns();
    const auto found = made(pattern).find_all(std::string(200'000, 'x'), 10, 0.2);
    ASSERT_FALSE(found) << pattern;
    EXPECT_THAT(found.error().message, HasSubstr("expected a search of"));
    EXPECT_LT(monotonic_now_ns() - start, int64_t{20'000'000'000}) << pattern;
  }
}

TEST(TextPattern, WhatIsNoPatternIsRefusedWithItsPlace) {
  const auto open = TextPattern::compile("tok (?<x>\\d", "study line 3");
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("study line 3: expected a regular expression"));
  EXPECT_THAT(open.error().message, HasSubstr("missing closing parenthesis"));
  EXPECT_FALSE(TextPattern::compile("(*UTF)x", "o"));
  EXPECT_FALSE(TextPattern::compile("(((a{1000}){1000}){1000})", "o"));
  EXPECT_FALSE(TextPattern::compile(std::string(20'000, 'a'), "o"));
}

}  // namespace
}  // namespace assay
