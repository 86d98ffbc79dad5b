// Ten thousand compiled decode steps over a static cache whose unused positions hold NaN: every
// step gives what the eager executor gives over a clean one, and memory stays as it was. Ten
// thousand schedules of requests in the slots of a batch, eager and compiled.
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "engine/device/cpu/cpu_device.h"
#include "engine/device/poisoned_tails.h"
#include "engine/serving/schedules.h"

namespace assay::engine {
namespace {

constexpr int64_t kSteps = 10'000, kMorePages = 64;

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * getpagesize();
}

class CompiledSoak : public testing::TestWithParam<size_t> {};

TEST_P(CompiledSoak, PoisonedTailsChangeNothingAndNothingGrows) {
  CpuDevice device({.threads = 2});
  test::PoisonedTails trial(families()[GetParam()], device, device);
  const auto poison = [](std::byte* to, size_t bytes) -> Status {
    std::memset(to, test::kNanBytes, bytes);
    return {};
  };
  trial.run(
      kSteps,
      {.poison = poison, .in_use = resident_bytes, .growth_bytes = kMorePages * getpagesize()});
}

TEST_P(CompiledSoak, SchedulesGiveEachRequestItsTokens) {
  constexpr int64_t kSchedules = 10'000;
  for (const bool compiled : {false, true}) {
    test::Schedules schedules(families()[GetParam()], {.threads = 2}, compiled);
    schedules.run(kSchedules, 2, [](std::byte* to, size_t bytes) -> Status {
      std::memset(to, test::kNanBytes, bytes);
      return {};
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CompiledSoak, testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

}  // namespace
}  // namespace assay::engine
