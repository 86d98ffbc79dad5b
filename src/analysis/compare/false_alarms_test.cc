// A bundle split against itself: how often its halves would fail each other.
#include "analysis/compare/false_alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/two_arms.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(SelfTest, FindsNoAlarmInAQuietBundleAndTheSameOnAnyNumberOfThreads) {
  TwoArms study(31, 1, 0.03);
  const Bundle bundle = study.bundle.build();
  ThreadPool pool(3);
  const auto alone = self_test(bundle, {}, 200, 42, nullptr);
  const auto pooled = self_test(bundle, {}, 200, 42, &pool);
  ASSERT_TRUE(alone && pooled);
  EXPECT_EQ(alone->splits, 200);
  EXPECT_FALSE(alone->every_split);
  EXPECT_EQ(alone->processes, 10);
  EXPECT_LE(alone->alarms, 10);
  EXPECT_EQ(alone->alarms, pooled->alarms);
  EXPECT_EQ(alone->differences, pooled->differences);
  EXPECT_GT(*alone->minimum_detectable, 0);
  EXPECT_EQ(self_test(bundle, {}, 252, 42, nullptr)->every_split, true) << "10 over 5";
}

// Halves of rows would share every process, and promise a precision that two runs don't have.
TEST(SelfTest, KeepsProcessesTogether) {
  const auto detectable = [](double process_shift) {
    const SyntheticCell like{
        .arm = "eager", .noise = 0.01, .processes = 4, .process_shift = process_shift};
    const auto test = self_test(run_of(33, like), {}, 100, 1, nullptr);
    EXPECT_EQ(test->splits, 6) << "of four, two at a time";
    EXPECT_TRUE(test->every_split);
    return *test->minimum_detectable;
  };
  EXPECT_GT(detectable(0.1), 5 * detectable(0));
}

TEST(SelfTest, RefusesABundleThatHasTooFewProcessesOrRows) {
  const auto refused = [](int64_t repetitions, int64_t processes) {
    SyntheticBundle bundle(32);
    bundle.add({.arm = "eager", .repetitions = repetitions, .processes = processes});
    const auto test = self_test(bundle.build(), {}, 10, 1, nullptr);
    return test ? "" : test.error().message;
  };
  EXPECT_THAT(refused(30, 0),
              HasSubstr("at least 4 processes and 10 warm ok rows to split, found 1 "
                        "process: rows of one process can't show"));
  EXPECT_THAT(refused(30, 3), HasSubstr("found 3 processes"));
  EXPECT_THAT(refused(9, 9), HasSubstr("found none"));
  EXPECT_EQ(refused(10, 4), "");
}

}  // namespace
}  // namespace assay
