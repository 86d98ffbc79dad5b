// The YAML tree: structure, line numbers, and the bounds that hostile text runs into.
#include "study/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view yaml) {
  const auto tree = parse_yaml(yaml, "f.yaml");
  return tree ? "no error" : tree.error().message;
}

TEST(YamlTree, KeepsOrderLinesAndQuotes) {
  const auto tree = parse_yaml("b: 1\na:\n  - x\n  - \"2\"\n", "f.yaml");
  ASSERT_TRUE(tree) << tree.error().message;
  ASSERT_EQ(tree->keys.size(), 2u);
  EXPECT_EQ(tree->keys[0].text, "b");
  EXPECT_EQ(tree->keys[1].line, 2);
  const YamlNode& list = tree->values[1];
  ASSERT_EQ(list.values.size(), 2u);
  EXPECT_EQ(list.values[0].line, 3);
  EXPECT_FALSE(list.values[0].quoted);
  EXPECT_EQ(list.values[1].text, "2");
  EXPECT_TRUE(list.values[1].quoted);
}

TEST(YamlTree, EmptyTextIsNull) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    const auto tree = parse_yaml(text, "f.yaml");
    ASSERT_TRUE(tree) << text;
    EXPECT_EQ(tree->kind, YamlNode::Kind::kNull);
  }
}

TEST(YamlTree, AnAbsentValueStandsOnTheLineOfItsKey) {
  const auto tree = parse_yaml("a: 1\nb:\n\n\nc: 2\n", "f.yaml");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->values[1].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(tree->values[1].line, 2);
}

TEST(YamlTree, RefusesWhatAStudyHasNoUseFor) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"),
            "f.yaml line 3: expected each key once, found \"a\" again (first on line 1)");
  EXPECT_EQ(error_of("a: &x 1\nb: *x\n"),
            "f.yaml line 1: expected values written out, found an anchor");
  EXPECT_THAT(error_of("a: !!str 1\n"), HasSubstr("line 1: expected values without tags"));
  EXPECT_THAT(error_of("? [a, b]\n: 1\n"), HasSubstr("expected a word as key"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("expected one document"));
}

TEST(YamlTree, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(error_of("a: 1\nb: [1, 2\n"), HasSubstr("f.yaml line 3: expected YAML, found: "));
  EXPECT_THAT(error_of("a: b: c\n"), HasSubstr("line 1: expected YAML"));
  EXPECT_THAT(error_of("a: *missing\n"), HasSubstr("line 1"));
}

TEST(YamlTree, BoundsDepthNodesKeysAndSize) {
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("expected"));
  EXPECT_THAT(error_of(std::string(20, '[') + std::string(20, ']')),
              HasSubstr("nested at most 16"));
  std::string list = "[";
  for (int i = 0; i < 30'000; ++i) list += "1,";
  EXPECT_THAT(error_of(list + "1]"), HasSubstr("expected at most 20000 values"));
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(error_of(keys), HasSubstr("expected at most 64 keys"));
  EXPECT_THAT(error_of(std::string(2 << 20, 'a')), HasSubstr("expected at most 1048576 bytes"));
}

TEST(YamlTree, AliasBombIsAnErrorAtItsFirstAnchor) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_EQ(error_of(bomb), "f.yaml line 1: expected values written out, found an anchor");
}

TEST(YamlTree, ErrorsAreOneLine) {
  for (const char* text :
       {"\"a\\nb\": 1\n\"a\\nb\": 2\n", "a: !x%0Ay 1\n", "\x01", "a: \xff\xfe:"}) {
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace assay
