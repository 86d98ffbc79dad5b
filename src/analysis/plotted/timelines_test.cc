#include "analysis/plotted/timelines.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Json event(const char* category, const std::string& name, double begin_us, double length_us) {
  return {{"ph", "X"}, {"cat", category}, {"name", name}, {"ts", begin_us}, {"dur", length_us}};
}

Timeline timeline(const Json& events) {
  return timeline_of({{"traceEvents", events}}).value_or(Timeline{});
}

TEST(Timelines, WorkIsPutIntoLanesByItsKind) {
  const Timeline made = timeline(
      {event("kernel", "gemm", 1000, 2000), event("gpu_memcpy", "h2d", 0, 500),
       event("cuda_driver", "cuLaunchKernel", 900, 10), event("cpu_op", "aten::mm", 800, 400)});
  EXPECT_DOUBLE_EQ(made.length_ms, 3);
  ASSERT_EQ(made.lanes.size(), 3u) << "operators are for traces without a GPU";
  EXPECT_EQ(made.lanes[0].name, "kernels");
  EXPECT_EQ(made.lanes[1].name, "copies");
  EXPECT_EQ(made.lanes[2].name, "calls");
  EXPECT_DOUBLE_EQ(made.lanes[0].spans[0].begin_ms, 1);
  EXPECT_DOUBLE_EQ(made.lanes[0].spans[0].end_ms, 3);
}

TEST(Timelines, OnlyTheTimedRegionCounts) {
  const Timeline made =
      timeline({event("user_annotation", "assay: timed region", 100, 1000),
                event("cpu_op", "aten::warm_up", 0, 50), event("cpu_op", "aten::mm", 200, 300),
                event("cpu_op", "aten::after", 2000, 50)});
  EXPECT_DOUBLE_EQ(made.length_ms, 1);
  ASSERT_EQ(made.lanes.size(), 1u);
  ASSERT_EQ(made.lanes[0].spans.size(), 1u);
  EXPECT_EQ(made.lanes[0].spans[0].name, "aten::mm");
  EXPECT_DOUBLE_EQ(made.lanes[0].spans[0].begin_ms, 0.1);
}

TEST(Timelines, OperatorsAreTheInnermostAndGraphsHaveALaneOfTheirOwn) {
  Json other_thread = event("cpu_op", "aten::sum", 2000, 100);
  other_thread["tid"] = 7;
  const Timeline made =
      timeline({event("user_annotation", "assay: timed region", 0, 10'000),
                event("cpu_op", "Torch-Compiled Region: 0/0", 900, 8000),
                event("cpu_op", "## Call CompiledFxGraph f", 1000, 4000),
                event("cpu_op", "aten::linear", 1500, 2000), event("cpu_op", "aten::mm", 1600, 100),
                event("cpu_op", "aten::add", 3000, 400), other_thread});
  ASSERT_EQ(made.lanes.size(), 2u);
  EXPECT_EQ(made.lanes[0].name, "compiled graphs");
  ASSERT_EQ(made.lanes[0].spans.size(), 1u);
  EXPECT_DOUBLE_EQ(made.lanes[0].spans[0].end_ms, 5);
  EXPECT_EQ(made.lanes[1].name, "operators");
  std::vector<std::string> names;
  for (const auto& span : made.lanes[1].spans) names.push_back(span.name);
  EXPECT_EQ(names, (std::vector<std::string>{"aten::mm", "aten::sum", "aten::add"}));
}

TEST(Timelines, WaitsTooShortToBeSeenAreInTheShareThatIsBusy) {
  Json events = Json::array({event("kernel", "long", 500'000, 500'000)});
  for (int i = 0; i < 1000; ++i) events.push_back(event("kernel", "short", i * 10, i == 7 ? 9 : 2));
  const Timeline made = timeline(events);
  const TimelineLane& kernels = made.lanes[0];
  EXPECT_EQ(kernels.events, 1001);
  EXPECT_NEAR(kernels.busy_ms, 502.007, 1e-9);
  ASSERT_GE(kernels.spans.size(), 2u);
  int64_t counted = 0;
  for (const auto& span : kernels.spans) {
    counted += span.events;
    if (span.name == "long") continue;
    EXPECT_NEAR(span.busy_ms / (span.end_ms - span.begin_ms), 0.2, 0.01);
  }
  EXPECT_EQ(counted, 1001);
  EXPECT_EQ(kernels.spans.back().name, "long");
  EXPECT_DOUBLE_EQ(kernels.spans.back().busy_ms, 500);
}

// The share of the trace that is drawn as busy, span by span as high as its share.
double drawn(const TimelineLane& lane) {
  double busy_ms = 0;
  for (const auto& span : lane.spans) busy_ms += span.busy_ms;
  return busy_ms;
}

TEST(Timelines, AMachineThatWaitsDoesNotLookBusy) {
  // A kernel of 1 us every 100 us: 1 % busy, with waits of 1/300 of the trace.
  Json events = Json::array();
  for (int i = 0; i < 300; ++i) events.push_back(event("kernel", "k", i * 100, 1));
  events.push_back(event("kernel", "k", 29'999, 1));
  const Timeline made = timeline(events);
  EXPECT_EQ(made.lanes[0].spans.size(), 301u) << "each wait is as wide as a pixel";
  EXPECT_NEAR(drawn(made.lanes[0]), 0.301, 1e-9);
  // The same with waits that no pixel shows, and a busy stretch in their middle.
  events = Json::array();
  for (int i = 0; i < 30'000; ++i) {
    const bool busy = i >= 10'000 && i < 20'000;
    events.push_back(event("kernel", "k", i * 10, busy ? 10 : 0.5));
  }
  const Timeline dense = timeline(events);
  const auto& spans = dense.lanes[0].spans;
  EXPECT_NEAR(drawn(dense.lanes[0]), dense.lanes[0].busy_ms, 1e-6);
  EXPECT_NEAR(dense.lanes[0].busy_ms, 110, 0.01);
  ASSERT_GE(spans.size(), 3u);
  EXPECT_LT(spans.size(), 20u) << "what is drawn alike is one span";
  EXPECT_NEAR(spans.front().busy_ms / (spans.front().end_ms - spans.front().begin_ms), 0.05, 0.01);
  EXPECT_NEAR(spans.back().busy_ms / (spans.back().end_ms - spans.back().begin_ms), 0.05, 0.01);
}

TEST(Timelines, BesideALongerTraceWaitsAreInTheShareToo) {
  // Half busy, in 100 bars; beside a trace a hundred times as long all of it has four pixels.
  Json events = Json::array();
  for (int i = 0; i < 100; ++i) events.push_back(event("kernel", i == 60 ? "x" : "k", i * 10, 5));
  events.push_back(event("kernel", "last", 1000, 0));
  Timeline made = timeline(events);
  EXPECT_EQ(made.lanes[0].spans.size(), 101u);
  coarsen(made, made.length_ms / 4);
  const TimelineLane& kernels = made.lanes[0];
  EXPECT_NEAR(kernels.busy_ms, 0.5, 1e-9);
  EXPECT_NEAR(drawn(kernels), 0.5, 1e-9);
  ASSERT_LE(kernels.spans.size(), 4u);
  int64_t counted = 0;
  for (const auto& span : kernels.spans) {
    EXPECT_NEAR(span.busy_ms / (span.end_ms - span.begin_ms), 0.5, 0.02);
    counted += span.events;
  }
  EXPECT_EQ(counted, 101);
}

TEST(Timelines, EventsBesideOneAnotherAreBusyOnce) {
  const Timeline made = timeline({event("kernel", "a", 0, 600), event("kernel", "b", 400, 600),
                                  event("kernel", "none", 700, 0)});
  EXPECT_DOUBLE_EQ(made.lanes[0].busy_ms, 1);
  EXPECT_EQ(made.lanes[0].events, 3);
  ASSERT_EQ(made.lanes[0].spans.size(), 1u);
  EXPECT_DOUBLE_EQ(made.lanes[0].spans[0].busy_ms, 1);
}

TEST(Timelines, WorkBeyondTheTimedRegionIsNotBusyInIt) {
  const Timeline made = timeline({event("user_annotation", "assay: timed region", 0, 1000),
                                  event("kernel", "last", 900, 5000)});
  EXPECT_DOUBLE_EQ(made.lanes[0].busy_ms, 0.1);
  EXPECT_DOUBLE_EQ(made.lanes[0].spans.back().end_ms, 1);
}

TEST(Timelines, WhatIsNoTraceHasNone) {
  EXPECT_FALSE(timeline_of(Json()));
  EXPECT_FALSE(timeline_of({{"traceEvents", 3}}));
  EXPECT_FALSE(timeline_of({{"traceEvents", Json::array()}}));
  EXPECT_FALSE(timeline_of({{"traceEvents",
                             {event("kernel", "backwards", 5, -2),
                              Json(7),
                              {{"ph", "X"}, {"cat", "kernel"}, {"ts", "now"}}}}}));
  EXPECT_FALSE(timeline_of({{"traceEvents", {event("kernel", "of no time", 5, 0)}}}));
}

}  // namespace
}  // namespace assay
