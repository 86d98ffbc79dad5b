// NVML against a shared object that the build makes, and against files that aren't one.
#include "identity/gpu_sensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/places.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GpuSensors, ListsWhatTheDriverTells) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors) << sensors.error().message;
  EXPECT_EQ(gpus_to_json((*sensors)->list()).dump(),
            R"([{"name":"Cool GPU","uuid":"GPU-cool","driver":"580.1","memory_bytes":1000},)"
            R"({"name":"Hot GPU","uuid":"GPU-hot","driver":"580.1"}])");
}

TEST(GpuSensors, ReadsTheGpuThatIsAskedFor) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors);
  const GpuState cool = (*sensors)->read("GPU-cool");
  EXPECT_EQ(cool.sm_clock_mhz, 1980);
  EXPECT_EQ(cool.temperature_c, 40);
  EXPECT_DOUBLE_EQ(cool.power_w.value_or(0), 123.456);
  const GpuState hot = (*sensors)->read("GPU-hot");
  EXPECT_EQ(hot.sm_clock_mhz, 345);
  EXPECT_FALSE(hot.power_w) << "the driver doesn't tell";
  EXPECT_EQ(hot.throttled, true);
  EXPECT_THAT(hot.throttle_reasons, ElementsAre("heat", "hardware slowdown"));
}

TEST(GpuSensors, AReasonThatLowersNoClockIsNone) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors);
  EXPECT_THAT((*sensors)->read("GPU-cool").throttle_reasons, ElementsAre("power"))
      << "nothing was counted since an earlier reading";
  EXPECT_EQ((*sensors)->read("GPU-cool").throttled, false) << "the counter stood still";
  ::setenv("FAKE_NVML_POWER", "1", 1);
  const GpuState held = (*sensors)->read("GPU-cool");
  ::unsetenv("FAKE_NVML_POWER");
  EXPECT_EQ(held.throttled, true);
  EXPECT_THAT(held.throttle_reasons, ElementsAre("power"));
  EXPECT_EQ((*sensors)->read("GPU-cool").throttled, false);
}

TEST(GpuSensors, NamesTheProcessesOnAGpuAndWhoComputed) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors);
  EXPECT_TRUE((*sensors)->processes("GPU-cool")->empty());
  EXPECT_TRUE((*sensors)->uses_since("GPU-cool", 0)->empty());
  std::string many = "41:2048:99 42:4096:0";
  for (int i = 0; i < 100; ++i) many += fmt::format(" {}:1:0", 1000 + i);
  ::setenv("FAKE_NVML_PROCESSES", many.c_str(), 1);
  const auto processes = (*sensors)->processes("GPU-cool");
  const auto uses = (*sensors)->uses_since("GPU-cool", 0);
  const auto later = (*sensors)->uses_since("GPU-cool", INT64_MAX);
  ::unsetenv("FAKE_NVML_PROCESSES");
  ASSERT_TRUE(processes && uses && later);
  ASSERT_EQ(processes->size(), 102u) << "more than there was room for at first";
  EXPECT_EQ(processes->at(0).pid, 41);
  EXPECT_EQ(processes->at(0).name, "neighbour") << "without its folder";
  EXPECT_EQ(processes->at(1).memory_bytes, 4096u);
  ASSERT_EQ(uses->size(), 1u);
  EXPECT_EQ(uses->at(0).pid, 41);
  EXPECT_DOUBLE_EQ(uses->at(0).share, 0.99);
  EXPECT_TRUE(later->empty());
  EXPECT_FALSE((*sensors)->processes("GPU-hot")) << "the driver doesn't tell";
  EXPECT_FALSE((*sensors)->uses_since("GPU-hot", 0));
  EXPECT_FALSE((*sensors)->processes("GPU-other"));
}

TEST(GpuSensors, CountsTheEnergyOfAGpuThatHasTheCounter) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors);
  const auto first = (*sensors)->energy_j("GPU-cool");
  ASSERT_TRUE(first);
  auto later = first;
  while (later == first) later = (*sensors)->energy_j("GPU-cool");
  EXPECT_GT(later, first);
  EXPECT_FALSE((*sensors)->energy_j("GPU-hot"));
  EXPECT_FALSE((*sensors)->energy_j("GPU-other"));
}

TEST(GpuSensors, AnUnknownGpuIsAbsent) {
  const auto sensors = open_nvml(built("libfake_nvml.so"));
  ASSERT_TRUE(sensors);
  for (const char* uuid : {"GPU-other", ""}) {  // "": there are two
    const GpuState state = (*sensors)->read(uuid);
    EXPECT_FALSE(state.sm_clock_mhz);
    EXPECT_FALSE(state.throttled);
  }
}

TEST(GpuSensors, SaysWhatIsMissing) {
  const auto none = open_nvml("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kEnvironment);
  const auto other = open_nvml("libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("nvmlInit_v2"));
  ::setenv("FAKE_NVML_FAILS", "1", 1);
  const auto silent = open_nvml(built("libfake_nvml.so"));
  ::unsetenv("FAKE_NVML_FAILS");
  ASSERT_FALSE(silent);
  EXPECT_THAT(silent.error().message, HasSubstr("Driver Not Loaded"));
}

}  // namespace
}  // namespace assay
