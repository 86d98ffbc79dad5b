// The checks of `assay doctor` on made-up machines.
#include "identity/checkup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

using testing::HasSubstr;

Host good_host() {
  Host host;
  host.cpus_online = {0, 1, 2, 3};
  host.cpus_allowed = {0, 1};
  host.memory_bytes = 16'000'000'000;
  host.memory_available_bytes = 8'000'000'000;
  host.transparent_huge_pages = "madvise";
  host.clocksource = "tsc";
  host.load_1min = 0.1;
  return host;
}

BuildInfo release_build() {
  BuildInfo build;
  build.compiler = "gcc 12.2.0";
  build.build_type = "Release";
  build.optimized = true;
  return build;
}

Check find(const std::vector<Check>& checks, std::string_view name) {
  const auto found = std::ranges::find(checks, name, &Check::name);
  EXPECT_NE(found, checks.end()) << name;
  return found == checks.end() ? Check{} : *found;
}

TEST(Checkup, AGoodMachineIsOkThroughout) {
  for (const Check& check : machine_checks(good_host(), release_build())) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name << ": " << check.finding;
    EXPECT_EQ(check.fix, "") << check.name;
  }
}

TEST(Checkup, EachTroubleIsFoundWithAFix) {
  Host host = good_host();
  host.smt_active = true;
  host.memory_available_bytes = 100'000'000;
  host.transparent_huge_pages = "never";
  host.clocksource = "hpet";
  host.load_1min = 9;
  BuildInfo build = release_build();
  build.sanitizers = "address";
  for (const Check& check : machine_checks(host, build)) {
    EXPECT_EQ(check.status, CheckStatus::kLimited) << check.name;
    EXPECT_NE(check.fix, "") << check.name;
  }
}

TEST(Checkup, ABareMachineStillGetsAnswers) {
  FakeMachine machine;
  const Host host = read_host(machine.files());
  for (const Check& check : machine_checks(host, release_build())) {
    EXPECT_NE(check.finding, "") << check.name;
  }
  for (const Check& check : sensor_checks(machine.files(), host, {})) {
    EXPECT_EQ(check.status, CheckStatus::kMissing) << check.name;
    EXPECT_THAT(check.finding, HasSubstr("offers no such sensor"));
  }
}

TEST(Checkup, AMissingSensorHasItsReason) {
  FakeMachine machine;
  Host host = good_host();
  host.hypervisor = "QEMU";
  EXPECT_THAT(find(sensor_checks(machine.files(), host, {}), "power").finding,
              HasSubstr("this virtual machine does not"));
  machine.put("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
  const Check hidden = find(sensor_checks(machine.files(), host, {}), "power");
  EXPECT_THAT(hidden.finding, HasSubstr("may not read it"));
  EXPECT_THAT(hidden.fix, HasSubstr("chmod"));
  MachineSample sample;
  sample.power_w = 42;
  EXPECT_EQ(find(sensor_checks(machine.files(), host, sample), "power").finding, "42.0 W");
}

TEST(Checkup, DiskSpace) {
  EXPECT_EQ(disk_check(2e10).status, CheckStatus::kOk);
  EXPECT_EQ(disk_check(1e9).status, CheckStatus::kLimited);
  EXPECT_EQ(disk_check(environment_error("no")).status, CheckStatus::kMissing);
}

}  // namespace
}  // namespace assay
