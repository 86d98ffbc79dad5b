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
  // Something held the clock down since the GPU's last reading: the driver counts the time for
  // power and heat, and names a slowdown of the hardware while it lasts. Where it doesn't count,
  // what holds the clock down now.
  std::optional<bool> throttled;
  std::vector<std::string> throttle_reasons;  // power | heat | hardware slowdown; empty: none
};

// A process that holds memory of a GPU.
struct GpuProcess {
  int64_t pid = 0;
  std::string name;  // empty: unknown
  std::optional<uint64_t> memory_bytes;
};

// A window of the driver's sampling, and the process that it saw computing in it.
struct GpuUse {
  int64_t pid = 0;
  int64_t at_us = 0;  // the window's end, by the wall clock
  double share = 0;   // of the window, in which some of the process's kernels ran
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
  // Processes that have memory on the GPU (chosen as above). Absent: the driver doesn't tell.
  virtual std::optional<std::vector<GpuProcess>> processes(const std::string&) {
    return std::nullopt;
  }
  // Windows that ended after that time, some five a second, each with at most one process. Absent:
  // the driver doesn't tell. Milliseconds.
  virtual std::optional<std::vector<GpuUse>> uses_since(const std::string&, int64_t) {
    return std::nullopt;
  }
};

// $ASSAY_NVML or libnvidia-ml.so.1. environment_error that names the missing part: the library, a
// function of it, or the driver behind it.
Result<std::unique_ptr<GpuSensors>> open_nvml();
Result<std::unique_ptr<GpuSensors>> open_nvml(const std::string& library);

// [{"name", "uuid", "driver", "memory_bytes"}]
Json gpus_to_json(const std::vector<GpuInfo>& gpus);

}  // namespace assay
