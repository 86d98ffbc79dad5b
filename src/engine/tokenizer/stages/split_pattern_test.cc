#include "engine/tokenizer/stages/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> cut(std::string_view pattern, std::string_view text) {
  const auto compiled = SplitPattern::compile(pattern, "test");
  EXPECT_TRUE(compiled) << compiled.error().message;
  std::vector<std::string_view> pieces;
  EXPECT_TRUE(compiled->split(text, pieces));
  return {pieces.begin(), pieces.end()};
}

TEST(SplitPattern, Gpt2KeepsOneSpaceWithTheWord) {
  EXPECT_THAT(cut(kGpt2Pattern, "it's  two\n\n"), ElementsAre("it", "'s", " ", " two", "\n\n"));
  EXPECT_THAT(cut(kGpt2Pattern, "IT'S 1234"), ElementsAre("IT", "'", "S", " 1234"));
}

TEST(SplitPattern, Llama3CutsDigitsByThreeAndContractionsInBothCases) {
  EXPECT_THAT(cut(kLlama3Pattern, "IT'S 1234"), ElementsAre("IT", "'S", " ", "123", "4"));
  EXPECT_THAT(cut(kQwen2Pattern, "12"), ElementsAre("1", "2"));
}

// Steps grow with the text: a pattern that needs its cube, or worse, is refused.
TEST(SplitPattern, BacktrackingWithoutEndIsRefused) {
  const std::string text = std::string(1000, 'x') + "zy";
  for (const char* pattern : {"(x+x+)+y", "x*x*x*y"}) {
    const auto compiled = SplitPattern::compile(pattern, "test");
    ASSERT_TRUE(compiled) << compiled.error().message;
    std::vector<std::string_view> pieces;
    const Status split = compiled->split(text, pieces);
    ASSERT_FALSE(split) << pattern;
    EXPECT_THAT(split.error().message, HasSubstr("expected a match within its limits"));
  }
}

TEST(SplitPattern, KnownPatternsTakeLongRunsOfAnything) {
  constexpr size_t kMany = 300'000;
  std::string mixed;
  for (size_t i = 0; i < kMany / 4; ++i) mixed += "  \na";
  for (const std::string_view pattern : {kGpt2Pattern, kLlama3Pattern, kQwen2Pattern}) {
    for (const std::string& text :
         {std::string(kMany, ' '), std::string(kMany, ' ') + "a", std::string(kMany, '\n'),
          std::string(kMany, 'a'), std::string(kMany, '1'), std::string(kMany, '.'), mixed}) {
      std::string joined;
      for (const std::string& piece : cut(pattern, text)) joined += piece;
      EXPECT_EQ(joined, text) << pattern;
    }
  }
}

TEST(SplitPattern, WhiteSpaceIsThatOfOniguruma) {
  // U+180E has not been white space since Unicode 6.3, though PCRE2 counts it.
  EXPECT_THAT(cut(R"(\s+)", "a\u180eb\u00a0c"), ElementsAre("a\u180eb", "\u00a0", "c"));
  EXPECT_THAT(cut(R"([^\s]+)", "a\u0085b"), ElementsAre("a", "\u0085", "b"));
}

TEST(SplitPattern, EmptyMatchesCutWithoutEndlessLoop) {
  EXPECT_THAT(cut("x*", "a\u00e9xb"), ElementsAre("a", "\u00e9", "x", "b"));
  EXPECT_THAT(cut("", "ab"), ElementsAre("a", "b"));
}

TEST(SplitPattern, RefusesWhatTheTwoLibrariesReadDifferently) {
  for (const char* pattern :
       {R"(\h)", R"(\w+)", R"(\bx)", R"([a&&b])", R"([[:alpha:]])", R"([\S])", R"(\p{Han})",
        R"((?<name>x))", "(*UTF)x", "x{,3}", "x{2}+", R"(\x41)", R"(\)", "[]x]"}) {
    const auto compiled = SplitPattern::compile(pattern, "file");
    ASSERT_FALSE(compiled) << pattern;
    EXPECT_THAT(compiled.error().message, HasSubstr("file: expected a regular expression"));
  }
  EXPECT_FALSE(SplitPattern::compile("(", "file"));
  EXPECT_FALSE(SplitPattern::compile(std::string(100'000, 'x'), "file"));
}

TEST(SplitPattern, RunawayBacktrackingIsAnError) {
  const auto compiled = SplitPattern::compile("(x+x+)+y", "file");
  ASSERT_TRUE(compiled);
  std::vector<std::string_view> pieces;
  const auto done = compiled->split(std::string(200, 'x') + "zy", pieces);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("limit"));
}

}  // namespace
}  // namespace assay::engine
