#include "backend/native/native_profile.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using engine::cuda::Activity;
using Kind = Activity::Kind;

const std::vector<Activity> kActivities = {{Kind::kKernel, "before", 0, 90},
                                           {Kind::kCall, "cuGraphLaunch", 100, 110},
                                           {Kind::kKernel, "gemv", 150, 250},
                                           {Kind::kKernel, "gemv", 240, 300},
                                           {Kind::kCopy, "copy", 330, 340},
                                           {Kind::kKernel, "argmax", 350, 360},
                                           {Kind::kCall, "cuStreamSynchronize", 120, 370},
                                           {Kind::kKernel, "after", 500, 600}};

TEST(NativeProfile, SumsUpWhatLiesInTheRegion) {
  const Json summary = profile_summary(kActivities, 95, 400);
  EXPECT_EQ(summary["kernels_launched"], 3);
  EXPECT_EQ(summary["distinct_kernels"], 2);
  EXPECT_EQ(summary["launch_calls"], 1);
  EXPECT_EQ(summary["synchronizations"], 1);
  EXPECT_EQ(summary["copies"], 1);
  EXPECT_EQ(summary["gpu_busy_ns"], 150 + 10 + 10) << "kernels that overlap count once";
  EXPECT_EQ(summary["gpu_gap_ns"], 30 + 10);
  EXPECT_EQ(summary["top"][0], Json({{"name", "gemv"}, {"calls", 2}, {"total_ns", 160}}));
}

TEST(NativeProfile, TheTraceBeginsWithTheRegion) {
  const auto trace = parse_json(chrome_trace(kActivities, 95, 400), "trace");
  ASSERT_TRUE(trace);
  const Json& events = (*trace)["traceEvents"];
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0]["cat"], "cuda_driver");
  EXPECT_DOUBLE_EQ(events[0]["ts"], 0.005);
  EXPECT_EQ(events[2]["cat"], "kernel");
}

TEST(NativeProfile, NothingIsAnEmptyProfile) {
  const Json summary = profile_summary({}, 0, 10);
  EXPECT_EQ(summary["kernels_launched"], 0);
  EXPECT_EQ(summary["gpu_busy_ns"], 0);
}

}  // namespace
}  // namespace assay
