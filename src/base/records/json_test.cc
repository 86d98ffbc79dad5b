#include "base/records/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

TEST(Json, AMemberThatComesTwiceIsRefused) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += fmt::format("\"k{}\": {}, ", i * 37 % 100, i);
  EXPECT_TRUE(parse_json("{" + many + "\"a\": {\"a\": 1}, \"b\": {\"a\": 1}}", "t"));
  for (const std::string& text : {std::string(R"({"a": 1, "b": 2, "a": 3})"),
                                  std::string(R"([{"": {"a": [], "b": {}, "a": 1}}])"),
                                  "{" + many + "\"a\": 1, \"b\": 1, \"a\": 1}"}) {
    EXPECT_THAT(parse_json(text, "t").error().message,
                HasSubstr("t: expected each member of an object once, found \"a\" twice"));
  }
}

TEST(Json, BothReadersMakeTheSameTree) {
  const Json::parser_callback_t all = [](int, Json::parse_event_t, Json&) { return true; };
  for (const char* text :
       {"[0, 7, -7, 9223372036854775807, -9223372036854775808, 18446744073709551615]",
        "[18446744073709551616, 1e2, -0.0, 0.1, 5e-324, 1.7976931348623157e308, 1e-400]",
        R"(["", "\u00e9\ud83d\ude00\n\"\\/", "\u0000"])",
        R"({"a": {"b": [[], {}, null, true, false]}})", "7", "\"x\"", " null ",
        "\xef\xbb\xbf[1]"}) {
    const auto quick = parse_json(text, "t");
    const auto filtered = parse_json(text, "t", all);
    ASSERT_TRUE(quick && filtered) << text;
    EXPECT_EQ(*quick, *filtered) << text;
    EXPECT_EQ(to_json_line(*quick), to_json_line(*filtered)) << text;
    for (size_t i = 0; quick->is_array() && i < quick->size(); ++i) {
      EXPECT_EQ((*quick)[i].type(), (*filtered)[i].type()) << text << " at " << i;
    }
  }
}

TEST(Json, AFilterDropsMembersAndElements) {
  std::vector<std::string> seen;
  const auto filter = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    const char* name = event == Event::key            ? "key"
                       : event == Event::object_start ? "object"
                       : event == Event::array_start  ? "array"
                                                      : "value";
    seen.push_back(fmt::format("{} {}", depth, name));
    return !(event == Event::key && value == "x") && value != 7 &&
           !(event == Event::object_start && depth == 3);
  };
  const auto json = parse_json(
      R"({"x": [{"x": 1}], "a": [{"b": 1, "x": 5, "c": 7, "d": {"e": 1}, "f": [7, 8]}, {"x": "y"}]})",
      "t", filter);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(to_json_line(*json), R"({"a":[{"b":1,"f":[8]},{}]})");
  // The value of a member that is dropped is seen, and nothing inside it.
  EXPECT_THAT(std::vector(seen.begin(), seen.begin() + 5),
              testing::ElementsAre("0 object", "1 key", "1 array", "1 key", "1 array"));
  EXPECT_FALSE(parse_json(R"({"x": [1)", "t", filter));
  EXPECT_THAT(
      parse_json("{\"x\": " + std::string(64, '[') + std::string(64, ']') + "}", "t", filter)
          .error()
          .message,
      HasSubstr("at most 64 levels"));
  EXPECT_TRUE(parse_json("7", "t", filter)->is_null());
}

// A reader that looks at all siblings of each value, or for each member from the front, needs hours
// for these.
TEST(Json, AMillionSiblingsAreReadInOnePass) {
  constexpr size_t kMany = 1'000'000;
  std::string list = "[";
  std::string object = "{";
  for (size_t i = 0; i < kMany; ++i) {
    list += i % 2 == 0 ? "{}," : "[{\"a\": 1}],";
    object += fmt::format("\"{}\": [], ", i);
  }
  const auto siblings = parse_json(list + "0]", "t");
  ASSERT_TRUE(siblings) << siblings.error().message;
  EXPECT_EQ(siblings->size(), kMany + 1);
  const auto filtered = parse_json(
      list + "0]", "t", [](int, Json::parse_event_t, const Json& value) { return value != "a"; });
  ASSERT_TRUE(filtered) << filtered.error().message;
  EXPECT_EQ(to_json_line((*filtered)[1]), "[{}]");
  const auto members = parse_json(object + "\"last\": 0}", "t");
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_EQ(members->size(), kMany + 1);
  EXPECT_EQ(members->back(), 0);
}

TEST(Json, ALongTokenIsCutInTheMessage) {
  for (const std::string& text : {"\"" + std::string(100'000, 'x'), std::string(100'000, '1')}) {
    const auto json = parse_json("[" + text, "t");
    ASSERT_FALSE(json);
    EXPECT_LT(json.error().message.size(), 400U);
  }
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
