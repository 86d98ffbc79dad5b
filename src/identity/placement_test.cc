// Tests of the placement that the kernel's files state, made up and this process's own.
#include "identity/placement.h"

#include <gtest/gtest.h>
#include <sys/personality.h>
#include <unistd.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

void put_process(FakeMachine& machine) {
  machine
      .put("/proc/7/status",
           "Name:\tassay\nVmLck:\t      64 kB\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,6\n")
      .put("/proc/7/stat",
           "7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 "
           "140737488351232 29 "
           "30 "
           "31 32 33 34 35 36 37 38 3 40 41\n")
      .put("/proc/7/smaps_rollup",
           "00400000-7fff0000 ---p 00000000 00:00 0 [rollup]\n"
           "Rss:               10240 kB\nAnonHugePages:      4096 kB\n")
      .put("/proc/7/maps",
           "400000-401000 r--p 00000000 08:01 11    /usr/bin/assay\n"
           "1234000-1300000 rw-p 00000000 00:00 0   [heap]\n"
           "7f0000201000-7f0000801000 r--s 00000000 08:01 12  /models/gpt2 25m/model.safetensors\n"
           "7f0001000000-7f0001005000 rw-p 00000000 00:00 0\n"
           "7f0002003000-7f0002803000 rw-p 00000000 00:00 0 \n"
           "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n")
      .put("/proc/7/personality", "00000000\n")
      .put("/proc/sys/kernel/randomize_va_space", "2\n")
      .put("/sys/devices/system/cpu/cpu3/node1/cpulist", "2-3\n");
}

TEST(Placement, IsReadFromTheKernelsFiles) {
  FakeMachine machine;
  put_process(machine);
  EXPECT_EQ(read_placement(machine.files(), 7),
            (Placement{.cpus_allowed = "0-3,6",
                       .last_cpu = 3,
                       .numa_node = 1,
                       .resident_bytes = 10240 * 1024,
                       .huge_page_bytes = 4096 * 1024,
                       .addresses_random = true,
                       .address_randomisation = 2,
                       .locked_bytes = 64 * 1024,
                       .offsets = AddressOffsets{.program = 0,
                                                 .heap = 0x34000,
                                                 .stack = 140737488351232 % 0x200000,
                                                 .largest_file = 0x1000,
                                                 .largest_memory = 0x3000}}));
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
      .put("/proc/sys/kernel/randomize_va_space", "many\n")
      .put("/proc/7/maps", "");
  EXPECT_EQ(read_placement(machine.files(), 7), Placement());
  machine.put("/proc/7/maps", "no line\n-\nzz-yy r--p\n2000-1000 rw-p 0 0 0\n");
  EXPECT_EQ(read_placement(machine.files(), 7).offsets, AddressOffsets());
}

TEST(Placement, ThisProcessHasOne) {
  const Placement here = read_placement(MachineFiles(), ::getpid());
  EXPECT_TRUE(here.cpus_allowed && here.last_cpu);
  EXPECT_GT(here.resident_bytes.value_or(0), 1u << 16);
  ASSERT_TRUE(here.offsets);
  EXPECT_TRUE(here.offsets->program && here.offsets->stack && here.offsets->largest_file);
  if ((::personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) {
    EXPECT_EQ(here.addresses_random, false);
  }
}

}  // namespace
}  // namespace assay
