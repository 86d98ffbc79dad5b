// What the kernel's files say of a process, and of this one.
#include "identity/placement.h"

#include <gtest/gtest.h>
#include <sys/personality.h>
#include <unistd.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

void put_process(FakeMachine& machine) {
  machine.put("/proc/7/status", "Name:\tassay\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,6\n")
      .put("/proc/7/stat",
           "7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 "
           "30 "
           "31 32 33 34 35 36 37 38 3 40 41\n")
      .put("/proc/7/smaps_rollup",
           "00400000-7fff0000 ---p 00000000 00:00 0 [rollup]\n"
           "Rss:               10240 kB\nAnonHugePages:      4096 kB\n")
      .put("/proc/7/personality", "00000000\n")
      .put("/proc/sys/kernel/randomize_va_space", "2\n")
      .put("/sys/devices/system/cpu/cpu3/node1/cpulist", "2-3\n");
}

TEST(Placement, IsReadFromTheKernelsFiles) {
  FakeMachine machine;
  put_process(machine);
  EXPECT_EQ(read_placement(machine.files(), 7), (Placement{.cpus_allowed = "0-3,6",
                                                           .last_cpu = 3,
                                                           .numa_node = 1,
                                                           .resident_bytes = 10240 * 1024,
                                                           .huge_page_bytes = 4096 * 1024,
                                                           .addresses_random = true}));
}

TEST(Placement, FixedAddressesAreTheProcessesOrTheMachines) {
  FakeMachine machine;
  put_process(machine);
  machine.put("/proc/7/personality", "00040000\n");
  EXPECT_EQ(read_placement(machine.files(), 7).addresses_random, false);
  machine.put("/proc/7/personality", "00000000\n").put("/proc/sys/kernel/randomize_va_space", "0");
  EXPECT_EQ(read_placement(machine.files(), 7).addresses_random, false);
}

TEST(Placement, WhatIsNotToldIsAbsent) {
  FakeMachine machine;
  EXPECT_EQ(read_placement(machine.files(), 7), Placement());
  machine.put("/proc/7/stat", "7 (a\n")
      .put("/proc/7/smaps_rollup", "Rss: many kB\nAnonHugePages: 18446744073709551615 kB\n")
      .put("/proc/7/personality", "zz\n")
      .put("/proc/sys/kernel/randomize_va_space", "2\n");
  EXPECT_EQ(read_placement(machine.files(), 7), Placement());
}

TEST(Placement, ThisProcessHasOne) {
  const Placement here = read_placement(MachineFiles(), ::getpid());
  EXPECT_TRUE(here.cpus_allowed && here.last_cpu);
  EXPECT_GT(here.resident_bytes.value_or(0), 1u << 16);
  if ((::personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) {
    EXPECT_EQ(here.addresses_random, false);
  }
}

}  // namespace
}  // namespace assay
