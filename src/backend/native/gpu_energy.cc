// The counter's step is the longest time between two of its movements that were seen.
#include "backend/native/gpu_energy.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace assay {
namespace {

constexpr int64_t kPatience_ns = 1'000'000'000;
constexpr int kMovements = 3;

}  // namespace

std::unique_ptr<GpuEnergy> GpuEnergy::open(std::unique_ptr<GpuSensors> sensors, std::string uuid) {
  auto value = sensors->energy_j(uuid);
  if (!value) return nullptr;
  const int64_t start_ns = monotonic_now_ns();
  int64_t moved_ns = start_ns;
  int64_t step_ns = 0;
  int movements = 0;
  while (movements < kMovements) {
    const auto next = sensors->energy_j(uuid);
    const int64_t now_ns = monotonic_now_ns();
    if (!next || now_ns - start_ns > kPatience_ns) return nullptr;
    if (*next == *value) continue;
    value = next;
    // The first movement is somewhere in a step.
    if (movements++ > 0) step_ns = std::max(step_ns, now_ns - moved_ns);
    moved_ns = now_ns;
  }
  return std::unique_ptr<GpuEnergy>(new GpuEnergy(std::move(sensors), std::move(uuid), step_ns));
}

void GpuEnergy::begin(int64_t like_ns) {
  begun_.reset();
  if (like_ns > 0 && like_ns < kStepsResolved * step_ns_ / 2) return;
  begun_ = sensors_->energy_j(uuid_);
}

std::optional<double> GpuEnergy::end(int64_t region_ns) {
  const auto begun = std::exchange(begun_, std::nullopt);
  if (!begun || region_ns < kStepsResolved * step_ns_) return std::nullopt;
  const auto ended = sensors_->energy_j(uuid_);
  if (!ended || *ended < *begun) return std::nullopt;
  return *ended - *begun;
}

Json GpuEnergy::to_json() const {
  const double step_ms = static_cast<double>(step_ns_) * 1e-6;
  return {{"step_ms", step_ms}, {"least_region_ms", kStepsResolved * step_ms}};
}

}  // namespace assay
