// Counters' names, which workers, evidence and columns share.
#include "base/records/counter.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(Counters, HaveANameEachThatReadsBack) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kCounters; ++i) {
    const auto counter = static_cast<Counter>(i);
    EXPECT_EQ(parse_counter(counter_name(counter)), counter) << counter_name(counter);
    EXPECT_FALSE(counter_name(counter).empty());
    names.insert(counter_name(counter));
  }
  EXPECT_EQ(names.size(), kCounters);
  EXPECT_FALSE(parse_counter("something_new"));
  EXPECT_FALSE(parse_counter(""));
}

TEST(Counters, ThatNobodyCountedAreAbsentAndNotZero) {
  const Counts counts = {{Counter::kRecompiles, 0}};
  EXPECT_EQ(count_of(counts, Counter::kRecompiles), 0);
  EXPECT_EQ(count_of(counts, Counter::kGraphBreaks), std::nullopt);
}

TEST(Counters, SurviveTheirJson) {
  const Counts counts = {{Counter::kRecompiles, 0}, {Counter::kFreshCache, 1}};
  EXPECT_EQ(to_json_line(counts_to_json(counts)), R"({"recompiles":0,"fresh_cache":1})");
  EXPECT_EQ(counts_from_json(counts_to_json(counts)), counts);
  for (const char* text :
       {"null", "[]", "3", R"({"recompiles":1.5,"fallbacks":"2","unique_graphs":-1,"new":1})",
        R"({"graph_breaks":99999999999999999999,"graph_replays":18446744073709551615})"}) {
    EXPECT_TRUE(counts_from_json(*parse_json(text, "counts")).empty()) << text;
  }
}

}  // namespace
}  // namespace assay
