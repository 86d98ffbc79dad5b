#include "base/process/progress.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

class FakeClock final : public Clock {
 public:
  int64_t monotonic_ns() override { return now_ns; }
  int64_t wall_ns() override { return now_ns; }
  int64_t now_ns = 5'000'000'000;
};

TEST(ProgressLine, ShowsBarShareWhatAndTimeLeft) {
  const ProgressState half{.done = 45, .total = 90, .what = "c007  unit 12/90", .left_s = {}};
  EXPECT_EQ(progress_line(half, 80, 100),
            "[##########----------]   50 %  c007  unit 12/90  1 min 20 s left");
  EXPECT_EQ(progress_line(half, std::nullopt, 100),
            "[##########----------]   50 %  c007  unit 12/90");
}

TEST(ProgressLine, IsNeverWiderThanTheTerminal) {
  const ProgressState state{.done = 1, .total = 3, .what = std::string(200, 'x'), .left_s = {}};
  for (size_t columns = 0; columns < 120; ++columns) {
    EXPECT_LE(progress_line(state, 80, columns).size(), columns);
  }
  EXPECT_EQ(progress_line(state, 80, 40), " 33 %  " + std::string(16, 'x') + "  1 min 20 s left");
}

TEST(ProgressLine, PartsAreThereWholeOrNotAtAll) {
  const ProgressState state{
      .done = 1, .total = 2, .what = "eager leads  unit 12/90  repetition 3/5", .left_s = {}};
  const std::string bar = "[##########----------]  ";
  EXPECT_EQ(progress_line(state, {}, 70), bar + " 50 %  eager leads  unit 12/90  repetition 3/5");
  EXPECT_EQ(progress_line(state, {}, 69), bar + " 50 %  eager leads  unit 12/90");
  EXPECT_EQ(progress_line(state, {}, 42), bar + " 50 %  eager leads");
  EXPECT_EQ(progress_line(state, {}, 41), " 50 %  eager leads  unit 12/90");
  EXPECT_EQ(progress_line(state, {}, 20), " 50 %  eager leads");
  EXPECT_EQ(progress_line(state, {}, 12), " 50 %  eager");
}

TEST(ProgressLine, WhatIsLostStandsFirstAndInRed) {
  const ProgressState state{
      .done = 1, .total = 2, .what = "unit 1/2", .alert = "3 lost", .left_s = {}};
  EXPECT_EQ(progress_line(state, std::nullopt, 24), " 50 %  3 lost  unit 1/2");
  const std::string coloured = progress_line(state, std::nullopt, 24, true);
  EXPECT_EQ(coloured, " 50 %  \x1b[31m3 lost\x1b[0m  unit 1/2");
  EXPECT_EQ(progress_line(state, std::nullopt, 10, true), " 50 %  \x1b[31m3 l\x1b[0m");
  EXPECT_TRUE(progress_line(state, std::nullopt, 80, true).starts_with("\x1b[32m[###"));
}

TEST(ProgressLine, CutsBetweenCharacters) {
  const ProgressState state{.done = 0, .total = 3, .what = "\u00e4\u00f6\u00fc", .left_s = {}};
  EXPECT_EQ(progress_line(state, std::nullopt, 9), "  0 %  \u00e4\u00f6");
}

TEST(ProgressLine, SharesStayWithinTheirBounds) {
  for (const auto& [done, total, share] : std::vector<std::tuple<int, int, std::string>>{
           {0, 0, "  0 %"}, {9, 3, "100 %"}, {-1, 3, "  0 %"}, {999, 1000, " 99 %"}}) {
    EXPECT_EQ(progress_line({.done = done, .total = total, .what = "", .left_s = {}}, {}, 20),
              share);
  }
}

TEST(ProgressEstimate, CountsThisRunsStepsOnly) {
  const ProgressState state{.done = 60, .total = 100, .what = "", .left_s = {}};
  EXPECT_EQ(estimate_left_s(state, 0, 30), 20);
  EXPECT_EQ(estimate_left_s(state, 50, 30), 120) << "50 were done before it was resumed";
  EXPECT_EQ(estimate_left_s(state, 60, 30), std::nullopt);
}

TEST(Progress, RewritesALineAtIntervals) {
  FakeClock clock;
  std::string out;
  {
    Progress progress({.rewrite = true, .columns = 30, .interval_s = 0.1}, clock,
                      [&](std::string_view text) { out += text; });
    ProgressState state{.done = 0, .total = 4, .what = "a", .left_s = {}};
    progress.update(state);
    EXPECT_EQ(out, "\r\x1b[K  0 %  a");
    out.clear();
    state.done = 1;
    progress.update(state);
    EXPECT_EQ(out, "") << "too soon";
    clock.now_ns += 100'000'000;
    progress.update(state);
    EXPECT_EQ(out, "\r\x1b[K 25 %  a  300 ms left");
    out.clear();
    state.left_s = 7;
    state.done = 4;
    progress.update(state);
    EXPECT_EQ(out, "\r\x1b[K100 %  a  7.0 s left")
        << "the last shows at once, with the caller's time";
    out.clear();
    progress.clear();
    progress.clear();
    EXPECT_EQ(out, "\r\x1b[K");
    progress.update(state);
    out.clear();
  }
  EXPECT_EQ(out, "\r\x1b[K") << "nothing is left on the terminal";
}

TEST(Progress, WritesPlainLinesElsewhere) {
  FakeClock clock;
  std::string out;
  {
    Progress progress({.rewrite = false, .columns = 30, .interval_s = 30}, clock,
                      [&](std::string_view text) { out += text; });
    for (int i = 0; i <= 100; ++i) {
      progress.update({.done = i, .total = 100, .what = "x", .left_s = 1.0});
      clock.now_ns += 1'000'000'000;
    }
  }
  EXPECT_EQ(out,
            "  0 %  x  1.0 s left\n 30 %  x  1.0 s left\n 60 %  x  1.0 s left\n"
            " 90 %  x  1.0 s left\n100 %  x  1.0 s left\n");
}

}  // namespace
}  // namespace assay
