// The bandwidth probe reads every byte it says it reads, on any number of threads.
#include "engine/device/cpu/bandwidth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files/files.h"
#include "engine/codegen/cpu/scratch_folder.h"

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

// A machine of files: 3 GiB available, and a control group below another.
TEST(Bandwidth, KnowsWhatMemoryIsLeft) {
  const ScratchFolder scratch;
  const auto write = [&](const std::string& path, const std::string& text) {
    const auto file = scratch.path() / path;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(write_file(file, text));
  };
  EXPECT_EQ(available_memory_bytes(scratch.path()), std::nullopt);
  write("proc/meminfo", "MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable:    3145728 kB\n");
  EXPECT_EQ(available_memory_bytes(scratch.path()), uint64_t{3} << 30);
  write("proc/self/cgroup", "3:memory:/x\n0::/above/below\n");
  write("sys/fs/cgroup/above/below/memory.max", "max\n");
  write("sys/fs/cgroup/above/below/memory.current", "5\n");
  EXPECT_EQ(available_memory_bytes(scratch.path()), uint64_t{3} << 30);
  write("sys/fs/cgroup/above/memory.max", "1000\n");
  write("sys/fs/cgroup/above/memory.current", "400\n");
  EXPECT_EQ(available_memory_bytes(scratch.path()), 600u) << "the group above bounds it too";
  write("sys/fs/cgroup/above/memory.current", "1400\n");
  EXPECT_EQ(available_memory_bytes(scratch.path()), 0u);
}

TEST(Bandwidth, KnowsTheLargestCache) {
  const ScratchFolder scratch;
  EXPECT_EQ(last_level_cache_bytes(scratch.path()), std::nullopt);
  const auto caches = scratch.path() / "sys/devices/system/cpu/cpu0/cache";
  for (const auto& [index, size] : {std::pair(0, "32K\n"), {1, "96M\n"}, {2, "512K\n"}}) {
    const auto folder = caches / fmt::format("index{}", index);
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(write_file(folder / "size", size));
  }
  EXPECT_EQ(last_level_cache_bytes(scratch.path()), uint64_t{96} << 20);
}

TEST(Bandwidth, MemoryThatIsNotThereIsNotTaken) {
  ThreadPool pool(1);
  const auto gbps = measure_read_bandwidth(pool, size_t{1} << 50);
  ASSERT_FALSE(gbps.has_value());
  EXPECT_EQ(gbps.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(gbps.error().message.find("expected 2.25 PB of free memory"), std::string::npos)
      << gbps.error().message;
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
