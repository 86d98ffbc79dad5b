// Slow calls, and the causes that they are counted under.
#include "analysis/describe/slow_calls.h"

#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

constexpr int64_t kCallEvery = 20'000'000;  // ns

struct World {
  World() {
    eager = bundle.add({.arm = "eager", .noise = 0.01, .repetitions = 200, .processes = 5});
    other = bundle.add_compiled(
        {.arm = "static", .noise = 0.01, .repetitions = 200, .processes = 5}, "false");
  }
  void slow_down(const std::string& cell, int64_t repetition) {
    *bundle.row(cell, repetition).latency_ms *= 3;
  }
  std::vector<ArmSlowCalls> described() {
    Bundle built = bundle.build();
    int64_t at = 1;
    for (Row& row : built.rows) row.started_at_ns = kCallEvery * at++;
    return describe_slow_calls(built, *group_rows(built, {"eager", "static"}));
  }
  // The one arm's that has slow calls.
  ArmSlowCalls only() {
    const auto all = described();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? ArmSlowCalls{} : all.front();
  }

  SyntheticBundle bundle{7};
  std::string eager;
  std::string other;
};

TEST(SlowCalls, NoneInACleanBundle) {
  EXPECT_TRUE(World().described().empty());
}

TEST(SlowCalls, WithoutACauseAreUnexplained) {
  World world;
  world.slow_down(world.eager, 17);
  const ArmSlowCalls found = world.only();
  EXPECT_EQ(found.arm, "eager");
  EXPECT_EQ(found.slow, 1);
  EXPECT_TRUE(found.causes.empty());
  EXPECT_EQ(found.unexplained(), 1);
  EXPECT_FALSE(found.high_without);
}

TEST(SlowCalls, OfARecompileAreItsAlone) {
  World world;
  world.bundle.compile(world.other, 0, 0);
  for (const int at : {20, 61, 107}) world.bundle.compile(world.other, at, 80);
  const ArmSlowCalls found = world.only();
  ASSERT_EQ(found.causes.size(), 1u);
  EXPECT_EQ(found.causes[0].kind, "recompile");
  EXPECT_EQ(found.causes[0].slow, 3);
  EXPECT_EQ(found.causes[0].others, 1);  // the first graph, which took no time
  EXPECT_NEAR(*found.high_without, 10.2, 0.2);
  EXPECT_NEAR(found.high, 80, 0.1);
}

TEST(SlowCalls, BesideSlowOnesOfAnotherArmPointToTheMachine) {
  World world;
  for (const int at : {20, 61}) {
    world.slow_down(world.eager, at);
    world.slow_down(world.other, at);
  }
  for (const ArmSlowCalls& found : world.described()) {
    ASSERT_EQ(found.causes.size(), 1u) << found.arm;
    EXPECT_EQ(found.causes[0].kind, "others_slow");
    EXPECT_EQ(found.causes[0].slow, 2);
  }
}

TEST(SlowCalls, FarFromSlowOnesOfAnotherArmDoNot) {
  World world;
  world.slow_down(world.eager, 20);
  world.slow_down(world.other, 121);
  for (const ArmSlowCalls& found : world.described())
    EXPECT_EQ(found.unexplained(), 1) << found.arm;
}

TEST(SlowCalls, AreToldByTheirProcess) {
  World first;
  for (const int at : {0, 40, 80}) first.slow_down(first.eager, at);
  EXPECT_EQ(first.only().causes.at(0).kind, "first_of_process");
  World one;
  for (const int at : {85, 93, 110}) one.slow_down(one.eager, at);
  const ArmSlowCalls found = one.only();
  EXPECT_EQ(found.causes.at(0).kind, "one_process");
  EXPECT_EQ(found.causes.at(0).slow, 3);
  EXPECT_EQ(found.causes.at(0).others, 37);
}

TEST(SlowCalls, BesideASlowYardstickHadASlowProcessor) {
  World world;
  for (Row& row : world.bundle.raw().rows) {
    row.yardstick_lookups_us = 30 + 0.01 * static_cast<double>(row.repetition % 7);
  }
  world.slow_down(world.eager, 50);
  world.bundle.row(world.eager, 50).yardstick_lookups_us = 50;
  EXPECT_EQ(world.only().causes.at(0).kind, "slow_processor");
}

TEST(SlowCalls, AtALoweredClockAreThrottled) {
  World world;
  world.slow_down(world.eager, 50);
  world.bundle.row(world.eager, 50).throttled = true;
  EXPECT_EQ(world.only().causes.at(0).kind, "throttled");
}

TEST(SlowCalls, HaveNoCauseInWhatOthersHaveAsOften) {
  World world;
  for (Row& row : world.bundle.raw().rows) row.throttled = row.repetition % 2 == 0;
  for (const int at : {50, 91}) world.slow_down(world.eager, at);
  const ArmSlowCalls found = world.only();
  EXPECT_TRUE(found.causes.empty());
  EXPECT_EQ(found.unexplained(), 2);
}

TEST(SlowCalls, OfAnArmThatCompilesAtEachCallAreNotToldByIt) {
  World world;
  world.bundle.compile(world.other, 0, 0);
  for (int at = 1; at < 200; ++at) world.bundle.compile(world.other, at, at == 90 ? 80 : 10);
  EXPECT_TRUE(world.only().causes.empty());
}

TEST(SlowCalls, OfFewRowsAreNotTold) {
  SyntheticBundle bundle(3);
  const std::string cell = bundle.add({.arm = "eager", .noise = 0.01, .repetitions = 9});
  *bundle.row(cell, 4).latency_ms *= 5;
  const Bundle built = bundle.build();
  EXPECT_TRUE(describe_slow_calls(built, *group_rows(built, {"eager"})).empty());
}

}  // namespace
}  // namespace assay
