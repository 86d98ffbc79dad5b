#include "base/clock.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Clock, UtcTextOfKnownMoments) {
  EXPECT_EQ(format_utc(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_utc(1'700'000'000'999'999'999), "2023-11-14T22:13:20Z");
}

TEST(Clock, MonotonicNeverGoesBack) {
  int64_t before = system_clock().monotonic_ns();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = monotonic_now_ns();
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace assay
