// Other programs on a GPU while a unit is measured: who holds its memory, and who computes there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "identity/gpu_sensors.h"
#include "identity/machine_files.h"

namespace assay {

// A program that isn't of this run.
struct GpuNeighbour {
  int64_t pid = 0;
  std::string process;                   // its name; empty: unknown
  std::optional<uint64_t> memory_bytes;  // the most that it held
  double share = 0;                      // of the GPU's time, in the mean over the driver's windows
};

// Serves one run, a unit after the other. A process is of this run if it is `self` or descends from
// it. The driver may number processes as another namespace does; those that this one doesn't show
// count only once a process of this run was on the list.
class GpuWatch {
 public:
  // References outlive it.
  GpuWatch(GpuSensors& gpus, MachineFiles files, pid_t self)
      : gpus_(gpus), files_(std::move(files)), self_(self) {}

  // Begins a unit on the GPU, at that time of the wall clock.
  void begin(const std::string& uuid, int64_t wall_ns);
  // Looks who is there; tens of microseconds, between repetitions.
  void look();
  // The unit's neighbours, those of the driver's windows before it included: a window is as long as
  // many units, and the one under way isn't told yet.
  std::vector<GpuNeighbour> end();

 private:
  enum class Kin { kOwn, kOther, kGone };
  Kin kin_of(int64_t pid) const;

  GpuSensors& gpus_;
  MachineFiles files_;
  pid_t self_;
  std::string uuid_;
  int64_t since_us_ = 0;
  std::set<int64_t> own_;                     // of all units: processes that end are still listed
  std::map<int64_t, GpuNeighbour> others_;    // of the unit
  std::map<int64_t, GpuNeighbour> vanished_;  // likewise, not shown here
};

}  // namespace assay
