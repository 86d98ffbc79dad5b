// Foreign files as JSON, lines or text, and the bounds on their content.
#include "import/source_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

std::string refusal(std::string text) {
  const auto source = parse_source(std::move(text), "file");
  return source ? "read" : source.error().message;
}

TEST(SourceText, OneDocumentIsReadWhole) {
  const auto source = parse_source("  {\n \"a\": [1, 2]\n}\n", "file");
  ASSERT_TRUE(source);
  ASSERT_EQ(source->documents.size(), 1U);
  EXPECT_FALSE(source->lines);
  EXPECT_EQ(source->documents[0]["a"][1], 2);
}

TEST(SourceText, ADocumentALineIsReadLineByLine) {
  const auto source = parse_source("{\"a\": 1}\r\n\n{\"a\": 2}", "file");
  ASSERT_TRUE(source);
  ASSERT_EQ(source->documents.size(), 2U);
  EXPECT_TRUE(source->lines);
  EXPECT_EQ(source->documents[1]["a"], 2);
}

TEST(SourceText, WhatIsNoJsonStaysText) {
  const auto source = parse_source(
      "\xEF\xBB\xBF"
      "a,b\n1,2\n",
      "file");
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->documents.empty());
  EXPECT_EQ(source->text, "a,b\n1,2\n");
}

TEST(SourceText, TheHashIsThatOfTheFile) {
  EXPECT_EQ(parse_source("{}", "file")->digest.sha256, sha256_hex("{}"));
}

TEST(SourceText, DamageIsOneLineThatNamesFileAndLine) {
  EXPECT_THAT(refusal("{\"a\": [1, 2"), HasSubstr("file: expected JSON"));
  EXPECT_THAT(refusal("{\"a\": 1}\n{\"a\": "), HasSubstr("file line 2: expected JSON"));
  EXPECT_THAT(refusal(" \n\t"), HasSubstr("found an empty file"));
  EXPECT_THAT(refusal(std::string("{\"a\0b\": 1}", 10)), HasSubstr("file: expected JSON"));
}

TEST(SourceText, AnotherEncodingIsNamed) {
  for (const std::string& text :
       {std::string("\xFF\xFE{\0}\0", 6), std::string("\xFE\xFF\0a", 4)}) {
    EXPECT_THAT(refusal(text), HasSubstr("expected UTF-8, found UTF-16"));
  }
}

TEST(SourceText, DeepNestingIsRefused) {
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("nested at most 64 levels"));
}

TEST(SourceText, AnArrayOfMoreValuesThanTheBoundIsRefused) {
  std::string text = "[";
  for (int64_t i = 0; i < kMostJsonValues; ++i) text += "1,";
  EXPECT_THAT(refusal(text + "1]"), HasSubstr("at most 5000000 JSON values, found more"));
  EXPECT_EQ(refusal("[1,1]"), "read");
}

TEST(SourceText, AnObjectOfMoreMembersThanTheBoundIsRefused) {
  const auto object = [](int64_t members) {
    std::string text = "[{\"first\": {\"a\": 1, \"b\": 2}";
    for (int64_t i = 1; i < members; ++i) text += fmt::format(", \"k{}\": 1", i);
    return text + "}, {\"k\": 1}]";
  };
  EXPECT_EQ(refusal(object(kMostJsonMembers)), "read");
  EXPECT_THAT(refusal(object(kMostJsonMembers + 1)), HasSubstr("at most 512 members"));
}

TEST(SourceText, NumbersThatPythonWritesAndJsonDoesntHaveAreNull) {
  const auto source = parse_source(
      R"({"NaN": [NaN, -Infinity, 1, Infinity], "text": "\"NaN\\", "other": "Infinity"})", "file");
  ASSERT_TRUE(source) << source.error().message;
  const Json& document = source->documents[0];
  EXPECT_EQ(document["NaN"], Json({nullptr, nullptr, 1, nullptr}));
  EXPECT_EQ(document["text"], "\"NaN\\");
  EXPECT_EQ(document["other"], "Infinity");
  const auto lines = parse_source("{\"a\": 1}\n{\"a\": NaN}\n", "file");
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_TRUE(lines->documents[1]["a"].is_null());
  EXPECT_THAT(refusal("{\"a\": NaNN}"), HasSubstr("file: expected JSON"));
  EXPECT_THAT(refusal("{\"a\": nan}"), HasSubstr("file: expected JSON"));
}

TEST(SourceText, AMemberThatComesTwiceInOneObjectIsRefused) {
  EXPECT_EQ(refusal(R"({"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]})"), "read");
  EXPECT_EQ(refusal("{\"a\": 1}\n{\"a\": 1}\n"), "read");
  for (const char* text : {R"({"a": 1, "b": 2, "a": 3})", R"([{"x": {"a": [], "b": {}, "a": 1}}])",
                           "{\"b\": 1}\n{\"a\": 1, \"a\": 1}\n"}) {
    EXPECT_THAT(refusal(text),
                HasSubstr("expected each member of an object once, found \"a\" twice"));
  }
}

TEST(SourceText, APackedFileIsNamed) {
  EXPECT_THAT(refusal("\x1F\x8B\x08 results"), HasSubstr("found a packed file (gzip)"));
  EXPECT_THAT(refusal("PK\x03\x04 results"), HasSubstr("found a packed file (zip)"));
  EXPECT_THAT(refusal("\x28\xB5\x2F\xFD results"), HasSubstr("found a packed file (zstd)"));
}

}  // namespace
}  // namespace assay
