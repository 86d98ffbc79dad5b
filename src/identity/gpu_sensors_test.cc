// NVML against a shared object that the build makes, and against files that aren't one.
#include "identity/gpu_sensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GpuSensors, ListsWhatTheDriverTells) {
  const auto sensors = open_nvml(FAKE_NVML);
  ASSERT_TRUE(sensors) << sensors.error().message;
  EXPECT_EQ(gpus_to_json((*sensors)->list()).dump(),
            R"([{"name":"Cool GPU","uuid":"GPU-cool","driver":"580.1","memory_bytes":1000},)"
            R"({"name":"Hot GPU","uuid":"GPU-hot","driver":"580.1"}])");
}

TEST(GpuSensors, ReadsTheGpuThatIsAskedFor) {
  const auto sensors = open_nvml(FAKE_NVML);
  ASSERT_TRUE(sensors);
  const GpuState cool = (*sensors)->read("GPU-cool");
  EXPECT_EQ(cool.sm_clock_mhz, 1980);
  EXPECT_EQ(cool.temperature_c, 40);
  EXPECT_DOUBLE_EQ(cool.power_w.value_or(0), 123.456);
  EXPECT_EQ(cool.throttled, false) << "idling isn't throttling";
  const GpuState hot = (*sensors)->read("GPU-hot");
  EXPECT_EQ(hot.sm_clock_mhz, 345);
  EXPECT_FALSE(hot.power_w) << "the driver doesn't tell";
  EXPECT_EQ(hot.throttled, true);
  EXPECT_THAT(hot.throttle_reasons, ElementsAre("hw_slowdown", "hw_thermal_slowdown"));
}

TEST(GpuSensors, CountsTheEnergyOfAGpuThatHasTheCounter) {
  const auto sensors = open_nvml(FAKE_NVML);
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
  const auto sensors = open_nvml(FAKE_NVML);
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
  const auto silent = open_nvml(FAKE_NVML);
  ::unsetenv("FAKE_NVML_FAILS");
  ASSERT_FALSE(silent);
  EXPECT_THAT(silent.error().message, HasSubstr("Driver Not Loaded"));
}

}  // namespace
}  // namespace assay
