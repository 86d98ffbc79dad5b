#include "base/add_once.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace assay {
namespace {

using Names = std::vector<std::string>;

TEST(AddOnce, KeepsTheOrderInWhichValuesFirstCame) {
  Names names;
  EXPECT_TRUE(add_once(names, "static"));
  EXPECT_TRUE(add_once(names, "eager"));
  EXPECT_FALSE(add_once(names, "static"));
  EXPECT_EQ(names, (Names{"static", "eager"}));
}

TEST(AddOnce, TakesAValueThatIsMovedOnlyWhereItIsNew) {
  Names names = {"a name that is too long to be kept within the string itself"};
  std::string again = names.front();
  EXPECT_FALSE(add_once(names, std::move(again)));
  EXPECT_EQ(again, names.front());
  std::string next = "another name that is too long to be kept within the string";
  EXPECT_TRUE(add_once(names, std::move(next)));
  EXPECT_EQ(names.size(), 2U);
}

TEST(AddOnce, SaysWhereAValueStands) {
  Names names = {"b"};
  EXPECT_EQ(place_once(names, std::string("c")), 1U);
  EXPECT_EQ(place_once(names, std::string("b")), 0U);
  EXPECT_EQ(place_once(names, std::string("c")), 1U);
  EXPECT_EQ(names, (Names{"b", "c"}));
}

TEST(AddOnce, AddsEachOfSeveralOnce) {
  Names names = {"b"};
  add_each_once(names, Names{"c", "b", "c", "a"});
  EXPECT_EQ(names, (Names{"b", "c", "a"}));
  add_each_once(names, std::set<std::string>{"a", "d"});
  EXPECT_EQ(names, (Names{"b", "c", "a", "d"}));
}

}  // namespace
}  // namespace assay
