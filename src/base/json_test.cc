#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using testing::HasSubstr;

TEST(Json, KeysKeepTheirOrder) {
  const auto json = parse_json(R"({"z": 1, "a": [true, null, "x"]})", "t");
  ASSERT_TRUE(json);
  EXPECT_EQ(to_json_line(*json), R"({"z":1,"a":[true,null,"x"]})");
  EXPECT_EQ(to_json_text(Json{{"b", 1}}), "{\n  \"b\": 1\n}\n");
}

TEST(Json, WhatIsNoJsonIsOneLineThatNamesIt) {
  for (const char* text : {"", "{", "{\"a\":}", "nul", "[1,]", "\"\x01\"", "{\"a\":1}x", "\xff",
                           "1e999", "\"\\ud800\"", "{\"a\n\":"}) {
    const auto json = parse_json(text, "config.json");
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(json.error().message, HasSubstr("config.json: expected JSON, found "));
    EXPECT_EQ(json.error().message.find('\n'), std::string::npos) << json.error().message;
  }
}

TEST(Json, DeepNestingIsRefusedBeforeItHurts) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(64), "t"));
  EXPECT_THAT(parse_json(nested(65), "t").error().message, HasSubstr("at most 64 levels"));
  EXPECT_FALSE(parse_json(nested(10'000'000), "t"));
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\\\"[\"", "t")) << "text isn't nesting";
}

TEST(Json, WritingNeverThrows) {
  EXPECT_EQ(to_json_line("a\xff"
                         "b"),
            "\"a\uFFFD"
            "b\"");
  EXPECT_EQ(to_json_line(std::nan("")), "null");
}

TEST(Json, MembersAreTyped) {
  const Json json = {{"s", "text"}, {"i", -3}, {"d", 1.5}, {"b", false}, {"n", nullptr}};
  EXPECT_EQ(json_string(json, "s", "t"), "text");
  EXPECT_EQ(json_int(json, "i", "t"), -3);
  EXPECT_EQ(json_number(json, "d", "t"), 1.5);
  EXPECT_EQ(json_number(json, "i", "t"), -3.0);
  EXPECT_EQ(json_bool(json, "b", "t"), false);
}

TEST(Json, AMemberOfAnotherTypeNamesKeyExpectedAndFound) {
  const Json json = {{"s", "text"}, {"i", 3}, {"d", 1.5}, {"u", UINT64_MAX}};
  EXPECT_EQ(json_int(json, "s", "config.json").error().message,
            "config.json: expected an integer at \"s\", found \"text\"");
  EXPECT_EQ(json_string(json, "missing", "config.json").error().message,
            "config.json: expected a string at \"missing\", found nothing");
  EXPECT_FALSE(json_int(json, "d", "t")) << "a fraction isn't an integer";
  EXPECT_FALSE(json_int(json, "u", "t")) << "it doesn't fit";
  EXPECT_FALSE(json_bool(json, "i", "t"));
  EXPECT_FALSE(json_number(json, "s", "t"));
  EXPECT_FALSE(json_int(Json::array({1}), "i", "t")) << "no object at all";
}

TEST(Json, AFallbackIsForAbsentMembersOnly) {
  const Json json = {{"s", "text"}, {"n", nullptr}, {"i", 1}};
  EXPECT_EQ(json_string_or(json, "x", "f", "t"), "f");
  EXPECT_EQ(json_int_or(json, "n", 7, "t"), 7);
  EXPECT_EQ(json_number_or(json, "x", 0.5, "t"), 0.5);
  EXPECT_EQ(json_bool_or(json, "x", true, "t"), true);
  EXPECT_EQ(json_int_or(json, "i", 7, "t"), 1);
  EXPECT_FALSE(json_int_or(json, "s", 7, "t"));
  EXPECT_FALSE(json_string_or(json, "i", "f", "t"));
  EXPECT_FALSE(json_bool_or(json, "i", true, "t"));
  EXPECT_FALSE(json_number_or(json, "s", 1, "t"));
}

TEST(Json, AMissingFileIsNamed) {
  const auto json = read_json_file("/no/such/config.json");
  ASSERT_FALSE(json);
  EXPECT_THAT(json.error().message, HasSubstr("/no/such/config.json: expected"));
}

}  // namespace
}  // namespace assay
