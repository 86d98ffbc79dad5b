#include "backend/native/gpu_energy.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace assay {
namespace {

// A counter that moves by 2 J every few readings, or never.
class SteppingCounter final : public GpuSensors {
 public:
  explicit SteppingCounter(int64_t readings_a_step) : readings_a_step_(readings_a_step) {}
  std::vector<GpuInfo> list() override { return {}; }
  GpuState read(const std::string&) override { return {}; }
  std::optional<double> energy_j(const std::string& uuid) override {
    if (uuid != "GPU-1") return std::nullopt;
    if (readings_a_step_ == 0) return 5;
    return static_cast<double>(readings_++ / readings_a_step_ * 2);
  }

 private:
  int64_t readings_a_step_;
  int64_t readings_ = 0;
};

TEST(GpuEnergy, CountsARegionOfManySteps) {
  const auto energy = GpuEnergy::open(std::make_unique<SteppingCounter>(1), "GPU-1");
  ASSERT_NE(energy, nullptr);
  EXPECT_GT(energy->step_ns(), 0);
  energy->begin(0);
  EXPECT_EQ(energy->end(GpuEnergy::kStepsResolved * energy->step_ns()), 2);
  EXPECT_FALSE(energy->end(INT64_MAX)) << "without a beginning";
  const double step_ms = static_cast<double>(energy->step_ns()) * 1e-6;
  EXPECT_EQ(energy->to_json(), (Json{{"step_ms", step_ms}, {"least_region_ms", 10 * step_ms}}));
}

TEST(GpuEnergy, ARegionOfFewStepsHasNoFigure) {
  const auto energy = GpuEnergy::open(std::make_unique<SteppingCounter>(100), "GPU-1");
  ASSERT_NE(energy, nullptr);
  energy->begin(0);
  EXPECT_FALSE(energy->end(GpuEnergy::kStepsResolved * energy->step_ns() - 1));
}

// A reading ahead of a region leaves the processor's caches cold.
TEST(GpuEnergy, AheadOfAShortRegionNothingIsRead) {
  const auto energy = GpuEnergy::open(std::make_unique<SteppingCounter>(1), "GPU-1");
  ASSERT_NE(energy, nullptr);
  const int64_t least_ns = GpuEnergy::kStepsResolved * energy->step_ns();
  energy->begin(least_ns / 2 - 1);
  EXPECT_FALSE(energy->end(least_ns));
  energy->begin(least_ns / 2);
  EXPECT_EQ(energy->end(least_ns), 2);
}

TEST(GpuEnergy, NothingWhereTheCounterIsNotThereOrStands) {
  EXPECT_EQ(GpuEnergy::open(std::make_unique<SteppingCounter>(1), "GPU-2"), nullptr);
  EXPECT_EQ(GpuEnergy::open(std::make_unique<SteppingCounter>(0), "GPU-1"), nullptr);
}

}  // namespace
}  // namespace assay
