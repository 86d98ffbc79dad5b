// Documents that are written and not read.
#include "base/records/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

struct Span {
  int64_t from = 0;
  int64_t to = 0;
  int64_t length() const { return to - from; }
};
struct Measured {
  double mean = 0;
};
struct Shown : Measured {
  size_t place = 0;
  std::optional<Span> span = {};
  std::vector<Span> spans = {};
  std::string hidden = {};
};
struct PlaceNames {
  std::vector<std::string> of_places;
};

}  // namespace

template <>
struct Record<Span> {
  static constexpr auto kMembers =
      std::tuple(field("from", &Span::from), derived("length", &Span::length),
                 constant("unit", "token"), unwritten(&Span::to));
};
template <>
struct Record<Shown> {
  using T = Shown;
  static constexpr auto kName = [](size_t place, const PlaceNames& in) {
    return in.of_places[place];
  };
  static constexpr auto kMembers = std::tuple(
      field_as("place", &T::place, kName), base_part<Measured>(field("mean", &Measured::mean)),
      nested("first", part(&T::span), where(std::not_fn(&T::span), constant("none", true))),
      list_of("spans", &T::spans, array_of("ends", &Span::from, &Span::to)), unwritten(&T::hidden));
};

namespace {

TEST(Entries, WriteWhatFollowsFromAStruct) {
  const PlaceNames names{{"here", "there"}};
  Shown shown;
  shown.mean = 0.5;
  shown.place = 1;
  shown.spans = {{1, 4}, {4, 6}};
  shown.hidden = "x";
  EXPECT_EQ(to_json_line(record_to_json(shown, names)),
            R"({"place":"there","mean":0.5,"first":{"none":true},)"
            R"("spans":[{"ends":[1,4]},{"ends":[4,6]}]})");
  shown.span = {2, 5};
  shown.spans = {};
  EXPECT_EQ(to_json_line(record_to_json(shown, names)),
            R"({"place":"there","mean":0.5,"first":{"from":2,"length":3,"unit":"token"},)"
            R"("spans":[]})");
}

TEST(Entries, OfARecordThatIsReadToo) {
  const Json json = {{"from", 3}, {"unit", "token"}};
  const auto span = record_from_json<Span>(json, "span");
  ASSERT_TRUE(span) << span.error().message;
  EXPECT_EQ(span->from, 3);
  EXPECT_EQ(span->to, 0);
  EXPECT_EQ(record_from_json<Span>({{"from", 3}, {"unit", "row"}}, "span").error().message,
            "span: expected token at unit, found \"row\"");
}

TEST(Entries, CoverTheMembersThatTheyDescribe) {
  static_assert(record::described_count<Shown>() == record::member_count<Shown>());
  static_assert(record::kCoveredBy<int64_t Span::*, int64_t (Span::*)() const> == 1);
}

}  // namespace
}  // namespace assay
