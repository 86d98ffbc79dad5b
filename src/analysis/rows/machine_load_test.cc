// Tests the text of a machine's load, and the differences that are named.
#include "analysis/rows/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bundle bundle_with(double load, double steal, int cpus = 2) {
  Bundle bundle;
  Json affinity = Json::array();
  for (int i = 0; i < cpus; ++i) affinity.push_back(i);
  bundle.environment["host"] = {{"cpu", {{"affinity", affinity}}},
                                {"system", {{"load_1min", 0.2}, {"steal_share", 0.001}}}};
  bundle.unit_notes = {{{"worst_load_1min", load - 0.1}, {"worst_steal_share", steal}},
                       {{"worst_load_1min", load + 0.1}},
                       Json::object()};
  return bundle;
}

TEST(MachineLoad, IsReadFromEnvironmentAndCommits) {
  const MachineLoad load = machine_load(bundle_with(1.2, 0.03));
  EXPECT_EQ(load.cpus, 2);
  EXPECT_EQ(load.start_load, 0.2);
  EXPECT_DOUBLE_EQ(*load.mean_load, 1.2);
  EXPECT_DOUBLE_EQ(*load.worst_load, 1.3);
  EXPECT_EQ(load.worst_steal, 0.03);
  EXPECT_EQ(
      load_text(load),
      "load average 0.20 at the start, 1.20 in the mean of its units, 1.30 at most; steal 0.1 "
      "% since boot, 3.0 % in the mean of its units, 3.0 % at most; 2 usable CPUs");
}

TEST(MachineLoad, WhatWasNotRecordedIsAbsentAndNoDifference) {
  const MachineLoad none = machine_load(Bundle());
  EXPECT_EQ(load_text(none), "");
  EXPECT_THAT(load_differences(none, machine_load(bundle_with(9, 0.5))), IsEmpty());
}

TEST(MachineLoad, ADifferenceIsNamedByItsFigures) {
  const MachineLoad idle = machine_load(bundle_with(1.0, 0.001));
  EXPECT_THAT(load_differences(idle, machine_load(bundle_with(1.4, 0.009))), IsEmpty());
  EXPECT_THAT(load_differences(idle, machine_load(bundle_with(2.5, 0.05))),
              ElementsAre("mean load average 1.00 in the base, 2.50 in the candidate",
                          "mean steal 0.1 % in the base, 5.0 % in the candidate"));
  EXPECT_THAT(
      load_differences(machine_load(bundle_with(3, 0, 16)), machine_load(bundle_with(5, 0, 16))),
      IsEmpty());
}

}  // namespace
}  // namespace assay
