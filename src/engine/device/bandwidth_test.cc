// The bandwidth probe reads every byte it says it reads, on any number of threads.
#include "engine/device/bandwidth.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::engine {
namespace {

TEST(Bandwidth, EveryPassReadsTheWholeBuffer) {
  for (const size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{1'000'003}, size_t{8} << 20}) {
      auto probe = BandwidthProbe::create(pool, bytes);
      ASSERT_TRUE(probe.has_value());
      EXPECT_GE(probe->size_bytes(), bytes);
      EXPECT_GT(probe->measure_once(), 0);
      EXPECT_EQ(probe->checksum(), probe->expected_checksum());
      uint32_t sum = 0;
      for (size_t part = 0; part < 3; ++part) {
        probe->measure_part(part, 3);
        sum += probe->checksum();
      }
      EXPECT_EQ(sum, probe->expected_checksum());
    }
  }
}

TEST(Bandwidth, FigureIsPositiveAndFinite) {
  ThreadPool pool(2);
  const auto gbps = measure_read_bandwidth(pool, size_t{16} << 20, 2);
  ASSERT_TRUE(gbps.has_value());
  EXPECT_GT(*gbps, 0);
  EXPECT_TRUE(std::isfinite(*gbps));
}

TEST(Bandwidth, TooLargeABufferIsAnEnvironmentError) {
  ThreadPool pool(1);
  const auto probe = BandwidthProbe::create(pool, size_t{1} << 60);
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(probe.error().message.find("bandwidth probe: memory: expected"), std::string::npos);
}

}  // namespace
}  // namespace assay::engine
