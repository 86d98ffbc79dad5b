// Hosts: a full machine, a bare one, an odd one, and the warnings that each earns.
#include "identity/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void put_xeon(FakeMachine& machine) {
  machine
      .put("/proc/cpuinfo",
           "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
           "model name\t: Intel(R) Xeon(R)\nstepping\t: 7\nmicrocode\t: 0x1\n"
           "flags\t\t: fpu sse2 ssse3 sse4_1 avx2 fma avx512f hypervisor\npower management:\n\n"
           "processor\t: 1\nmodel name\t: another\n\n")
      .put("/proc/self/status", "Name:\tx\nCpus_allowed:\tb\nCpus_allowed_list:\t0-1,3\n")
      .put("/proc/meminfo", "MemTotal:       16316412 kB\nMemAvailable:   8000000 kB\n")
      .put("/proc/loadavg", "0.71 0.50 0.30 1/100 1234\n")
      .put("/proc/stat", "cpu  100 0 50 800 10 0 0 40 0 0\ncpu0 1 2 3\n")
      .put("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n")
      .put("/proc/sys/kernel/random/boot_id", "8f4d12f9-6c2b-4a0e-9a57-1d3c0a1b2c3d\n")
      .put("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n")
      .put("/sys/devices/system/cpu/online", "0-3\n")
      .put("/sys/devices/system/cpu/smt/active", "1\n")
      .put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
      .put("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n")
      .put("/sys/devices/system/cpu/cpu0/cache/index3/size", "36608K\n")
      .put("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
      .put("/sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n")
      .put("/sys/devices/system/node/online", "0-1\n")
      .put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
      .put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
      .put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
}

TEST(Host, ReadsAFullMachine) {
  FakeMachine machine;
  put_xeon(machine);
  const Host host = read_host(machine.files());
  EXPECT_EQ(host.cpu_model, "Intel(R) Xeon(R)");
  EXPECT_EQ(host.cpu_family, 6);
  EXPECT_EQ(host.cpu_model_number, 85);
  EXPECT_EQ(host.cpu_stepping, 7);
  EXPECT_THAT(simd_flags(host.cpu_flags), ElementsAre("ssse3", "sse4_1", "avx2", "fma", "avx512f"));
  EXPECT_THAT(host.cpus_online, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(host.cpus_allowed, ElementsAre(0, 1, 3));
  EXPECT_EQ(host.usable_cpus(), 3.0);
  EXPECT_EQ(host.sockets, 2);
  EXPECT_EQ(host.smt_active, true);
  EXPECT_EQ(host.governor, "powersave");
  EXPECT_EQ(host.last_level_cache, "36608K");
  EXPECT_EQ(host.memory_bytes, int64_t{16316412} * 1024);
  EXPECT_EQ(host.numa_nodes, 2);
  EXPECT_EQ(host.hypervisor, "QEMU");
  EXPECT_EQ(host.kernel, "6.1.0-13-amd64");
  EXPECT_EQ(host.boot_id, "8f4d12f9-6c2b-4a0e-9a57-1d3c0a1b2c3d");
  EXPECT_EQ(host.distribution, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(host.transparent_huge_pages, "madvise");
  EXPECT_EQ(host.clocksource, "tsc");
  EXPECT_EQ(host.load_1min, 0.71);
  EXPECT_DOUBLE_EQ(host.steal_share.value_or(0), 0.04);
}

TEST(Host, WhatABareMachineDoesntTellIsAbsent) {
  FakeMachine machine;
  const Host host = read_host(machine.files());
  EXPECT_FALSE(host.cpu_model);
  EXPECT_FALSE(host.usable_cpus());
  EXPECT_FALSE(host.load_1min);
  EXPECT_FALSE(host.steal_share);
  EXPECT_FALSE(host.smt_active);
  EXPECT_THAT(host_warnings(host, 64), IsEmpty());
  const Json json = host_to_json(host);
  EXPECT_TRUE(json["cpu"].empty()) << json;
  EXPECT_TRUE(json["memory"].empty()) << json;
  EXPECT_FALSE(json["system"].contains("load_1min"));
}

TEST(Host, OddFilesAreAbsentToo) {
  FakeMachine machine;
  machine.put("/proc/cpuinfo", "no colon here\ncpu family : many\n")
      .put("/proc/self/status", "Cpus_allowed_list: 3-1\n")
      .put("/proc/meminfo", "MemTotal: lots\n")
      .put("/proc/loadavg", "\n")
      .put("/proc/stat", "cpu  1 2 3\n")
      .put("/sys/devices/system/cpu/online", "0-99999999999\n")
      .put("/sys/kernel/mm/transparent_hugepage/enabled", "]always[\n");
  const Host host = read_host(machine.files());
  EXPECT_FALSE(host.cpu_family);
  EXPECT_THAT(host.cpus_allowed, IsEmpty());
  EXPECT_THAT(host.cpus_online, IsEmpty());
  EXPECT_FALSE(host.memory_bytes);
  EXPECT_FALSE(host.load_1min);
  EXPECT_FALSE(host.steal_share);
  EXPECT_FALSE(host.transparent_huge_pages);
}

TEST(Host, ArmHasNumbersForAName) {
  FakeMachine machine;
  machine.put("/proc/cpuinfo",
              "processor : 0\nFeatures : fp asimd sve bf16\nCPU implementer : 0x41\nCPU part : "
              "0xd40\n\n");
  const Host host = read_host(machine.files());
  EXPECT_EQ(host.cpu_model, "Arm implementer 0x41 part 0xd40");
  EXPECT_THAT(simd_flags(host.cpu_flags), ElementsAre("asimd", "sve", "bf16"));
}

TEST(Host, QuotaOfEitherControlGroupVersion) {
  {
    FakeMachine machine;
    machine.put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    EXPECT_EQ(read_host(machine.files()).cpu_quota, 1.5);
    machine.put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_FALSE(read_host(machine.files()).cpu_quota);
  }
  FakeMachine machine;
  machine.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
      .put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_host(machine.files()).cpu_quota, 0.5);
  machine.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(read_host(machine.files()).cpu_quota);
}

TEST(HostWarnings, EachConditionHasItsSentence) {
  Host host;
  host.cpus_allowed = {0, 1};
  host.load_1min = 0.9;
  host.steal_share = 0.01;
  EXPECT_THAT(host_warnings(host, 2), IsEmpty());
  host.load_1min = 1.2;
  EXPECT_THAT(host_warnings(host, 2), ElementsAre(HasSubstr("loaded machine")));
  host.load_1min = 0;
  host.steal_share = 0.03;
  EXPECT_THAT(host_warnings(host, 2), ElementsAre(HasSubstr("shared machine")));
  host.steal_share = 0;
  EXPECT_THAT(host_warnings(host, 3), ElementsAre(HasSubstr("3 threads on 2 usable CPUs")));
  host.cpu_quota = 1.5;
  EXPECT_THAT(host_warnings(host, 1), ElementsAre(HasSubstr("limited CPU time")));
  host.cpu_quota.reset();
  host.governor = "powersave";
  EXPECT_THAT(host_warnings(host, 1), ElementsAre(HasSubstr("frequency governor \"powersave\"")));
  host.governor = "performance";
  EXPECT_THAT(host_warnings(host, 1), IsEmpty());
}

}  // namespace
}  // namespace assay
