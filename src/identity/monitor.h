// The state of the machine beside each measurement: clock, load, steal, temperature, power.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "identity/host.h"
#include "identity/machine_files.h"

namespace assay {

// A member that the machine doesn't offer is absent.
struct MachineSample {
  std::optional<double> cpu_mhz;  // mean over the CPUs that the process may use, now
  std::optional<double> load_1min;
  std::optional<double> steal_share;    // of all CPU time since the last sample
  std::optional<double> temperature_c;  // of the processor, now
  std::optional<double> power_w;        // of all processor packages, mean since the last sample
  std::optional<bool> throttled;        // the processor limited its clock since the last sample
};

// Finds the sensors once; sample() then reads a handful of small files (tens of microseconds), so
// it belongs between repetitions, never inside the timed region. Figures "since the last sample"
// are absent in the first one.
class Monitor {
 public:
  explicit Monitor(MachineFiles files = MachineFiles(), Clock& clock = system_clock());
  MachineSample sample();

 private:
  struct EnergyCounter {
    std::string path;
    int64_t range_uj;  // wraps to 0 past this
    std::optional<int64_t> last_uj;
  };

  void find_frequency();
  void find_temperature();
  void find_power();
  void find_throttling();
  std::optional<double> read_mhz() const;
  std::optional<double> read_steal();
  std::optional<double> read_power(int64_t now_ns);
  std::optional<bool> read_throttled();

  MachineFiles files_;
  Clock& clock_;
  std::vector<int64_t> cpus_;
  std::vector<std::string> frequency_paths_;  // in kHz
  bool frequency_from_cpuinfo_ = false;
  std::string temperature_path_;  // in thousandths of a degree; empty: none
  std::vector<EnergyCounter> energy_;
  std::vector<std::string> throttle_paths_;
  std::optional<CpuTicks> last_ticks_;
  std::optional<int64_t> last_energy_ns_;
  std::optional<int64_t> last_throttles_;
};

}  // namespace assay
