#include "engine/device/step_reads.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

constexpr uint64_t kCache = 32'000'000;

std::string said(double bytes, double nanoseconds, std::optional<uint64_t> cache) {
  return against_limit({bytes, nanoseconds, cache}, 10, "2 threads of this machine");
}

TEST(StepReads, FromMemoryAreAShareOfItsBandwidth) {
  EXPECT_EQ(said(100e6, 20e6, kCache),
            "50 % of the 10.00 GB/s that 2 threads of this machine can read");
  EXPECT_EQ(said(100e6, 10e6, std::nullopt),
            "100 % of the 10.00 GB/s that 2 threads of this machine can read");
}

TEST(StepReads, FromACacheAreNone) {
  EXPECT_EQ(said(32e6, 1e6, kCache),
            "the 32.00 MB of a step fit the last-level cache (32.00 MB), so memory is no limit");
}

TEST(StepReads, PartlyFromACacheAreARange) {
  EXPECT_EQ(
      said(100e6, 8e6, kCache),
      "85 to 100 % of the 10.00 GB/s that 2 threads of this machine can read: 32.00 MB of each "
      "step's 100.00 MB "
      "may come from the last-level cache");
}

TEST(StepReads, FasterThanMemoryAreNoShare) {
  const char* const varies =
      "more than the 10.00 GB/s that 2 threads of this machine read when that was measured "
      "afterwards, so the memory's speed varies";
  EXPECT_EQ(said(100e6, 5e6, kCache), varies);
  EXPECT_EQ(said(100e6, 8e6, std::nullopt), varies);
}

}  // namespace
}  // namespace assay::engine
