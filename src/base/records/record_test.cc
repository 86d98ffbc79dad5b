// Structs as JSON and back, and the errors for JSON that doesn't fit.
#include "base/records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/records/record_text.h"

namespace assay {
namespace {

enum class Colour { kRed, kBlue };

struct Point {
  double x = 0;
  std::optional<int64_t> y = {};
};

struct Drawing {
  std::string title;
  std::string author;
  Colour colour = Colour::kRed;
  bool framed = false;
  uint8_t layers = 1;
  std::vector<Point> points;
  std::map<int64_t, std::string> names;
  std::map<Colour, double> shares;
  std::optional<std::string> note;
  Json extra;
};

}  // namespace

template <>
struct EnumWords<Colour> {
  static constexpr std::array kAll = {Colour::kRed, Colour::kBlue};
  static std::string_view name(Colour colour) { return colour == Colour::kRed ? "red" : "blue"; }
};

template <>
struct Record<Point> {
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("x", &Point::x), field("y", &Point::y));
};

template <>
struct Record<Drawing> {
  using T = Drawing;
  static constexpr auto kMembers = std::tuple(
      field("title", &T::title), text_or_null("author", &T::author), field("colour", &T::colour),
      field("framed", &T::framed), field_may_lack("layers", &T::layers),
      field("points", &T::points), field("names", &T::names), field("shares", &T::shares),
      field_if_known("note", &T::note), field("extra", &T::extra));
};

namespace {

constexpr const char* kDrawing =
    R"({"title":"t","author":null,"colour":"blue","framed":true,"layers":3,)"
    R"("points":[[0.5,7],[1.0,null]],"names":{"-4":"far"},"shares":{"red":0.25},"extra":[1]})";

std::string text_of(const Drawing& drawing, JsonText::Layout layout) {
  JsonText out(layout);
  record::append_value(drawing, out, NoContext());
  return out.take();
}

TEST(Record, ItsTextIsThatOfItsTree) {
  Drawing drawing = *record_from_json<Drawing>(Json::parse(kDrawing), "d");
  Drawing odd = drawing;
  odd.title = "\x1b\"\\ \xC3\xA9 \xC2\x85 \xFF\n";
  odd.author = "me";
  odd.note = "";
  odd.extra = {{"a", Json::array()}, {"b", Json::object()}, {"c", {1, {2.5, nullptr}}}};
  odd.names[7] = "\x7F";
  odd.points.clear();
  for (const double x : {-0.0, 1e-7, 1e300, 123456789.0, 0.1 + 0.2, 5e-324, 9007199254740993.0,
                         std::numeric_limits<double>::infinity()}) {
    odd.points.push_back({x, INT64_MIN});
  }
  for (const Drawing& one : {Drawing(), drawing, odd}) {
    const Json tree = record_to_json(one);
    EXPECT_EQ(text_of(one, JsonText::Layout::kLine), to_json_line(tree) + "\n");
    EXPECT_EQ(text_of(one, JsonText::Layout::kIndented), to_json_text(tree));
  }
}

std::string refusal(const char* pointer, const Json& value) {
  Json json = *parse_json(kDrawing, "drawing");
  json[Json::json_pointer(pointer)] = value;
  const auto read = record_from_json<Drawing>(json, "drawing");
  return read ? "none" : read.error().message;
}

TEST(Records, SurviveTheirJson) {
  const auto drawing = record_from_json<Drawing>(*parse_json(kDrawing, "drawing"), "drawing");
  ASSERT_TRUE(drawing) << drawing.error().message;
  EXPECT_EQ(to_json_line(record_to_json(*drawing)), kDrawing);
  EXPECT_EQ(drawing->points.at(1).y, std::nullopt);
  EXPECT_EQ(drawing->names.at(-4), "far");
  EXPECT_EQ(drawing->shares.at(Colour::kRed), 0.25);
}

TEST(Records, CountTheMembersOfTheirStructs) {
  static_assert(record::member_count<Point>() == 2);
  static_assert(record::member_count<Drawing>() == 10);
}

TEST(Records, WriteNoFigureThatIsNotFinite) {
  const Json json = record_to_json(Point{std::numeric_limits<double>::infinity()});
  EXPECT_EQ(to_json_line(json), "[null,null]");
  EXPECT_EQ(to_json_line(record_to_json(*record_from_json<Point>(json, "p"))), "[null,null]");
}

TEST(Records, OfAnotherShapeAreRefusedByThePathOfWhatDoesNotFit) {
  EXPECT_EQ(refusal("/colour", "green"),
            "drawing: expected one of \"red\", \"blue\" at colour, found \"green\"");
  EXPECT_EQ(refusal("/points/1", Json::array({1, 2, 3})),
            "drawing: expected an array of 2 at points[1], found [1,2,3]");
  EXPECT_EQ(refusal("/points/1/1", 1.5), "drawing: expected an integer at points[1][1], found 1.5");
  EXPECT_EQ(refusal("/layers", 256), "drawing: expected a count at layers, found 256");
  EXPECT_EQ(refusal("/layers", -1), "drawing: expected a count at layers, found -1");
  EXPECT_EQ(refusal("/framed", 1), "drawing: expected true or false at framed, found 1");
  EXPECT_EQ(refusal("/author", 1), "drawing: expected a text at author, found 1");
  EXPECT_EQ(refusal("/names", Json{{"far", ""}}),
            "drawing: expected an integer for a member's name at names, found \"far\"");
  EXPECT_EQ(refusal("/shares", Json{{"green", 1}}),
            "drawing: expected one of \"red\", \"blue\" for a member's name at shares, found "
            "\"green\"");
  EXPECT_EQ(refusal("/note", nullptr), "none");
  Json lacking = *parse_json(kDrawing, "drawing");
  lacking.erase("layers");
  EXPECT_EQ(record_from_json<Drawing>(lacking, "drawing")->layers, 1);
  lacking.erase("title");
  EXPECT_EQ(record_from_json<Drawing>(lacking, "drawing").error().message,
            "drawing: expected a value at title, found nothing");
}

}  // namespace
}  // namespace assay
