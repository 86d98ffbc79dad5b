#include "backend/http/http_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace assay {
namespace {

constexpr int kPrompts = 5000;

// As a cache of prefixes would know it again.
template <typename Make>
size_t different_beginnings(Make make) {
  std::set<std::vector<std::string>> seen;
  for (int i = 0; i < kPrompts; ++i) seen.insert(make());
  return seen.size();
}

TEST(HttpPrompts, NoTwoBeginAlike) {
  HttpPrompts prompts(1);
  const std::vector<int32_t> ids(20, 7);
  const auto first_ids = [](const std::vector<int32_t>& of) {
    std::vector<std::string> first;
    for (int64_t i = 0; i < kUniqueIds; ++i)
      first.push_back(std::to_string(of[static_cast<size_t>(i)]));
    return first;
  };
  EXPECT_EQ(different_beginnings([&] { return first_ids(prompts.unique_ids(ids, 50'000, {})); }),
            kPrompts);
  EXPECT_EQ(different_beginnings([&] { return first_ids(prompts.drawn_ids(20, 50'000, {})); }),
            kPrompts);
  EXPECT_EQ(different_beginnings([&] {
              std::istringstream words(prompts.words(40));
              std::vector<std::string> first(kUniqueWords);
              for (std::string& word : first) words >> word;
              return first;
            }),
            kPrompts);
}

TEST(HttpPrompts, TheOtherIdsStayAndSpecialOnesAreNotDrawn) {
  HttpPrompts prompts(2);
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> special = {0, 2};
  for (int i = 0; i < 200; ++i) {
    const auto unique = prompts.unique_ids(ids, 5, special);
    ASSERT_EQ(unique.size(), ids.size());
    EXPECT_EQ(std::vector<int32_t>(unique.begin() + kUniqueIds, unique.end()),
              (std::vector<int32_t>{5, 6}));
    for (const int32_t id : std::span(unique).first(static_cast<size_t>(kUniqueIds)))
      EXPECT_THAT(id, testing::AnyOf(1, 3, 4));
  }
  EXPECT_EQ(prompts.unique_ids(std::vector<int32_t>{9, 9}, 5, special).size(), 2u);
}

TEST(HttpPrompts, WordsAreAsManyAsAsked) {
  HttpPrompts prompts(3);
  for (const int64_t count : {1, 9, 10, 11, 250}) {
    std::istringstream words(prompts.words(count));
    EXPECT_EQ(std::distance(std::istream_iterator<std::string>(words), {}), count);
  }
}

}  // namespace
}  // namespace assay
