#include "analysis/plotted/plotted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

std::vector<PlottedGroup> groups_of(const Bundle& bundle) {
  return plotted_groups(*group_rows(bundle, {"eager", "static"}));
}

const PlottedRow& row_of(const PlottedGroup& group, int64_t repetition) {
  return *std::ranges::find(group.order, repetition, &PlottedRow::repetition);
}

TEST(PlottedRows, AFewRowsAreAllThere) {
  SyntheticBundle made(3);
  const std::string id = made.add({.arm = "eager", .repetitions = 40, .warmup = 2});
  const Bundle bundle = made.build();
  const auto groups = groups_of(bundle);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].arm, "eager");
  EXPECT_EQ(groups[0].cells, std::vector<std::string>{id});
  EXPECT_EQ(groups[0].order.size(), 42u);
  EXPECT_EQ(groups[0].ecdf.size(), 40u) << "warm rows alone";
  EXPECT_EQ(groups[0].ecdf.back().share, 1);
  EXPECT_TRUE(std::ranges::is_sorted(groups[0].ecdf, {}, &EcdfStep::ms));
  EXPECT_TRUE(std::ranges::is_sorted(groups[0].order, {}, &PlottedRow::place));
  ASSERT_TRUE(groups[0].slowest);
  EXPECT_EQ(groups[0].slowest->latency_ms, groups[0].ecdf.back().ms);
}

TEST(PlottedRows, RowsAreRankedAmongTheirStratumsOwn) {
  SyntheticBundle made(3);
  made.add({.arm = "eager", .repetitions = 3});
  made.add({.arm = "static", .repetitions = 3});
  made.add({.arm = "eager", .scenario = "single_long", .prompt_tokens = 200, .repetitions = 3});
  const Bundle bundle = made.build();
  std::vector<std::vector<int64_t>> ranks;
  for (const PlottedGroup& group : groups_of(bundle)) {
    ranks.emplace_back();
    for (const PlottedRow& row : group.order) ranks.back().push_back(row.rank);
  }
  EXPECT_EQ(ranks, (std::vector<std::vector<int64_t>>{{0, 2, 4}, {1, 3, 5}, {0, 1, 2}}));
}

TEST(PlottedRows, RowsAreMarkedByTheWorstThereIsToSay) {
  SyntheticBundle made(3);
  const std::string id =
      made.add_compiled({.arm = "static", .repetitions = 10, .warmup = 1}, "false");
  made.compile(id, -1, 0);
  made.compile(id, 4, 90);
  made.row(id, 4).throttled = true;
  made.row(id, 5).throttled = true;
  made.lose(id, 6, RowStatus::kCrash, "SIGSEGV");
  const Bundle bundle = made.build();
  const auto groups = groups_of(bundle);
  EXPECT_EQ(row_of(groups[0], -1).mark, RowMark::kCold)
      << "what a first call compiles is no recompile";
  EXPECT_EQ(row_of(groups[0], 4).mark, RowMark::kRecompiled);
  EXPECT_EQ(row_of(groups[0], 5).mark, RowMark::kThrottled);
  EXPECT_EQ(row_of(groups[0], 6).mark, RowMark::kLost);
  EXPECT_EQ(row_of(groups[0], 6).latency_ms, std::nullopt);
  EXPECT_EQ(row_of(groups[0], 6).error_class, "SIGSEGV");
  EXPECT_EQ(row_of(groups[0], 7).mark, RowMark::kWarm);
  const std::map<RowMark, int64_t> expected = {{RowMark::kCold, 1},
                                               {RowMark::kThrottled, 1},
                                               {RowMark::kRecompiled, 1},
                                               {RowMark::kLost, 1}};
  EXPECT_EQ(groups[0].marked, expected);
}

TEST(PlottedRows, ManyRowsKeepExtremesAndMarks) {
  SyntheticBundle made(3);
  const std::string id = made.add({.arm = "eager", .repetitions = 900, .warmup = 5});
  made.row(id, 333).latency_ms = 500;
  made.row(id, 334).latency_ms = 0.5;
  made.lose(id, 700, RowStatus::kTimeout, "timeout");
  const Bundle bundle = made.build();
  const auto groups = groups_of(bundle);
  const PlottedGroup& group = groups[0];
  EXPECT_EQ(group.rows, 905);
  EXPECT_EQ(group.warm, 899);
  EXPECT_LE(group.order.size(), 320u);
  EXPECT_EQ(group.ecdf.size(), 300u);
  EXPECT_EQ(row_of(group, 333).latency_ms, 500);
  EXPECT_EQ(row_of(group, 334).latency_ms, 0.5);
  EXPECT_EQ(std::ranges::count(group.order, RowMark::kCold, &PlottedRow::mark), 5);
  EXPECT_EQ(row_of(group, 700).mark, RowMark::kLost);
  EXPECT_EQ(group.slowest->repetition, 333);
  EXPECT_EQ(group.ecdf.back().ms, 500);
  EXPECT_EQ(group.ecdf.back().share, 1);
}

TEST(PlottedRows, ThousandsOfMarkedRowsAreThinnedToo) {
  SyntheticBundle made(3);
  made.add({.arm = "eager", .repetitions = 10, .warmup = 2000});
  const Bundle bundle = made.build();
  const auto groups = groups_of(bundle);
  EXPECT_LE(groups[0].order.size(), 170u);
  EXPECT_EQ(groups[0].marked.at(RowMark::kCold), 2000);
}

}  // namespace
}  // namespace assay
