// Energy that a GPU takes in a timed region, by NVIDIA's counter, if that resolves the region.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/records/json.h"
#include "identity/gpu_sensors.h"

namespace assay {

class GpuEnergy {
 public:
  // The counter moves in steps; a region of fewer of them has no figure. Both ends of a longer one
  // are off by less than a step: together by less than a fifth of the region.
  static constexpr int64_t kStepsResolved = 10;

  // Watches the counter until it has moved three times, up to a second, to learn its step. Null
  // where there is no such counter, or it doesn't move.
  static std::unique_ptr<GpuEnergy> open(std::unique_ptr<GpuSensors> sensors, std::string uuid);

  // `like_ns`: how long the latest region of its kind took, 0 where none is known. Nothing is read
  // where it took less than half of what has a figure: a reading takes milliseconds, behind which
  // the processor's caches are cold.
  void begin(int64_t like_ns);
  // Joules since begin(); absent: the region was too short.
  std::optional<double> end(int64_t region_ns);
  int64_t step_ns() const { return step_ns_; }
  // {"step_ms", "least_region_ms"}: shorter regions have no figure.
  Json to_json() const;

 private:
  GpuEnergy(std::unique_ptr<GpuSensors> sensors, std::string uuid, int64_t step_ns)
      : sensors_(std::move(sensors)), uuid_(std::move(uuid)), step_ns_(step_ns) {}

  std::unique_ptr<GpuSensors> sensors_;
  std::string uuid_;
  int64_t step_ns_;
  std::optional<double> begun_;
};

}  // namespace assay
