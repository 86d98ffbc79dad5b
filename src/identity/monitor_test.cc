// The monitor on machines that offer everything, something and nothing.
#include "identity/monitor.h"

#include <gtest/gtest.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

class FakeClock final : public Clock {
 public:
  int64_t monotonic_ns() override { return now_ns; }
  int64_t wall_ns() override { return now_ns; }
  int64_t now_ns = 1'000'000'000;
};

constexpr char kCpu[] = "/sys/devices/system/cpu/";
constexpr char kRapl[] = "/sys/class/powercap/intel-rapl:0/";

TEST(Monitor, ReadsEverySensor) {
  FakeMachine machine;
  const std::string cpu = kCpu;
  const std::string rapl = kRapl;
  machine.put("/proc/self/status", "Cpus_allowed_list:\t0,2\n")
      .put("/proc/loadavg", "1.5 1 1\n")
      .put("/proc/stat", "cpu  100 0 0 100 0 0 0 0 0 0\n")
      .put(cpu + "cpu0/cpufreq/scaling_cur_freq", "2000000\n")
      .put(cpu + "cpu1/cpufreq/scaling_cur_freq", "9000000\n")
      .put(cpu + "cpu2/cpufreq/scaling_cur_freq", "3000000\n")
      .put(cpu + "cpu0/thermal_throttle/core_throttle_count", "4\n")
      .put("/sys/class/hwmon/hwmon0/name", "nvme\n")
      .put("/sys/class/hwmon/hwmon0/temp1_input", "30000\n")
      .put("/sys/class/hwmon/hwmon1/name", "coretemp\n")
      .put("/sys/class/hwmon/hwmon1/temp1_input", "61500\n")
      .put(rapl + "name", "package-0\n")
      .put(rapl + "max_energy_range_uj", "100000000\n")
      .put(rapl + "energy_uj", "90000000\n")
      .put("/sys/class/powercap/intel-rapl:0:0/name", "core\n")
      .put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n");
  FakeClock clock;
  Monitor monitor(machine.files(), clock);

  const MachineSample first = monitor.sample();
  EXPECT_EQ(first.cpu_mhz, 2500.0) << "the CPUs that the process may use";
  EXPECT_EQ(first.load_1min, 1.5);
  EXPECT_EQ(first.temperature_c, 61.5);
  EXPECT_FALSE(first.steal_share);
  EXPECT_FALSE(first.power_w);
  EXPECT_FALSE(first.throttled);

  clock.now_ns += 2'000'000'000;
  machine.put("/proc/stat", "cpu  140 0 0 140 0 0 0 20 0 0\n")
      .put(rapl + "energy_uj", "30000000\n")  // wrapped: 40 J later
      .put(cpu + "cpu0/thermal_throttle/core_throttle_count", "5\n");
  const MachineSample second = monitor.sample();
  EXPECT_DOUBLE_EQ(second.steal_share.value_or(-1), 0.2);
  EXPECT_DOUBLE_EQ(second.power_w.value_or(-1), 20.0);
  EXPECT_EQ(second.throttled, true);

  const MachineSample third = monitor.sample();
  EXPECT_FALSE(third.steal_share) << "no tick passed";
  EXPECT_FALSE(third.power_w) << "no time passed";
  EXPECT_EQ(third.throttled, false);
}

TEST(Monitor, BareMachineGivesNothing) {
  FakeMachine machine;
  Monitor monitor(machine.files());
  for (int i = 0; i < 2; ++i) {
    const MachineSample sample = monitor.sample();
    EXPECT_FALSE(sample.cpu_mhz);
    EXPECT_FALSE(sample.load_1min);
    EXPECT_FALSE(sample.steal_share);
    EXPECT_FALSE(sample.temperature_c);
    EXPECT_FALSE(sample.power_w);
    EXPECT_FALSE(sample.throttled);
  }
}

TEST(Monitor, CpuinfoCountsOnlyWhereItIsMeasured) {
  const std::string blocks = "cpu MHz\t\t: 2000.5\n\nprocessor : 1\ncpu MHz\t\t: 3000.5\n\n";
  FakeMachine machine;
  machine.put("/proc/cpuinfo", "flags : fpu aperfmperf\n" + blocks);
  EXPECT_EQ(Monitor(machine.files()).sample().cpu_mhz, 2500.5);
  machine.put("/proc/cpuinfo", "flags : fpu hypervisor\n" + blocks);
  EXPECT_FALSE(Monitor(machine.files()).sample().cpu_mhz) << "the nominal frequency, repeated";
}

TEST(Monitor, ThermalZoneWhereThereIsNoSensorOfTheProcessor) {
  FakeMachine machine;
  machine.put("/sys/class/thermal/thermal_zone0/type", "acpitz\n")
      .put("/sys/class/thermal/thermal_zone0/temp", "20000\n")
      .put("/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
      .put("/sys/class/thermal/thermal_zone1/temp", "45000\n");
  EXPECT_EQ(Monitor(machine.files()).sample().temperature_c, 45.0);
}

TEST(Monitor, ASensorThatVanishesIsAbsentFromThenOn) {
  FakeMachine machine;
  machine.put("/proc/loadavg", "1 1 1\n")
      .put(std::string(kRapl) + "name", "package-0\n")
      .put(std::string(kRapl) + "max_energy_range_uj", "1000\n")
      .put(std::string(kRapl) + "energy_uj", "5\n");
  FakeClock clock;
  Monitor monitor(machine.files(), clock);
  monitor.sample();
  clock.now_ns += 1'000'000'000;
  machine.put(std::string(kRapl) + "energy_uj", "gone\n").put("/proc/loadavg", "");
  const MachineSample sample = monitor.sample();
  EXPECT_FALSE(sample.power_w);
  EXPECT_FALSE(sample.load_1min);
}

TEST(Monitor, WorksOnThisMachine) {
  Monitor monitor;
  EXPECT_TRUE(monitor.sample().load_1min);
}

}  // namespace
}  // namespace assay
