// The state of GPUs beside each measurement, through NVIDIA's management library opened at run
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// A member that the driver doesn't tell is absent.
struct GpuInfo {
  std::string name;
  std::string uuid;  // "GPU-..."
  std::string driver;
  std::optional<uint64_t> memory_bytes;
};

struct GpuState {
  std::optional<double> sm_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<bool> throttled;              // the clock is held down for heat or power, now
  std::vector<std::string> throttle_reasons;  // by NVML's names; empty: none, or unknown
};

class GpuSensors {
 public:
  virtual ~GpuSensors() = default;
  virtual std::vector<GpuInfo> list() = 0;
  // Tens of microseconds: between repetitions, never inside the timed region. An empty uuid stands
  // for the machine's GPU where it has one. All absent: no such GPU.
  virtual GpuState read(const std::string& uuid) = 0;
  // Energy that the GPU (chosen as above) has taken since its driver was loaded; the counter moves
  // some ten times a second. Absent: no such GPU, or it has no such counter.
  virtual std::optional<double> energy_j(const std::string&) { return std::nullopt; }
};

// $ASSAY_NVML or libnvidia-ml.so.1. environment_error that names the missing part: the library, a
// function of it, or the driver behind it.
Result<std::unique_ptr<GpuSensors>> open_nvml();
Result<std::unique_ptr<GpuSensors>> open_nvml(const std::string& library);

// [{"name", "uuid", "driver", "memory_bytes"}]
Json gpus_to_json(const std::vector<GpuInfo>& gpus);

}  // namespace assay
