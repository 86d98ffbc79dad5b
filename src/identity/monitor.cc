// The state of the machine beside each measurement.
#include "identity/monitor.h"

#include <algorithm>
#include <charconv>

#include "base/text/text.h"

namespace assay {
namespace {

const std::string kCpuFolder = "/sys/devices/system/cpu/";

}  // namespace

Monitor::Monitor(MachineFiles files, Clock& clock) : files_(std::move(files)), clock_(clock) {
  const Host host = read_host(files_);
  cpus_ = host.cpus_allowed;
  find_frequency();
  // Without cpufreq, /proc/cpuinfo has a measured frequency only where the kernel can read the
  // counters of cycles; elsewhere (in most virtual machines) it repeats the nominal one.
  frequency_from_cpuinfo_ = frequency_paths_.empty() &&
                            std::ranges::find(host.cpu_flags, "aperfmperf") != host.cpu_flags.end();
  find_temperature();
  find_power();
  find_throttling();
}

void Monitor::find_frequency() {
  for (int64_t cpu : cpus_) {
    const std::string path = fmt::format("{}cpu{}/cpufreq/scaling_cur_freq", kCpuFolder, cpu);
    if (files_.integer(path)) frequency_paths_.push_back(path);
  }
}

// The processor's own sensor where there is one, else a thermal zone that is named after it.
void Monitor::find_temperature() {
  const std::vector<std::string> sensors = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
  for (const std::string& name : files_.list("/sys/class/hwmon")) {
    const std::string folder = "/sys/class/hwmon/" + name;
    const auto sensor = files_.line(folder + "/name");
    if (!sensor || std::ranges::find(sensors, *sensor) == sensors.end()) continue;
    if (!files_.integer(folder + "/temp1_input")) continue;
    temperature_path_ = folder + "/temp1_input";
    return;
  }
  for (const std::string& name : files_.list("/sys/class/thermal")) {
    const std::string folder = "/sys/class/thermal/" + name;
    const std::string type = files_.line(folder + "/type").value_or("");
    if (type != "x86_pkg_temp" && type.find("cpu") == std::string::npos) continue;
    if (!files_.integer(folder + "/temp")) continue;
    temperature_path_ = folder + "/temp";
    return;
  }
}

// Packages are intel-rapl:N; their parts, intel-rapl:N:M, are in them already.
void Monitor::find_power() {
  for (const std::string& name : files_.list("/sys/class/powercap")) {
    if (!name.starts_with("intel-rapl:") || std::ranges::count(name, ':') != 1) continue;
    const std::string folder = "/sys/class/powercap/" + name;
    if (!files_.line(folder + "/name").value_or("").starts_with("package")) continue;
    const auto range = files_.integer(folder + "/max_energy_range_uj");
    if (!range || !files_.integer(folder + "/energy_uj")) continue;
    energy_.push_back({folder + "/energy_uj", *range, std::nullopt});
  }
}

void Monitor::find_throttling() {
  for (int64_t cpu : cpus_) {
    const std::string path =
        fmt::format("{}cpu{}/thermal_throttle/core_throttle_count", kCpuFolder, cpu);
    if (files_.integer(path)) throttle_paths_.push_back(path);
  }
}

std::optional<double> Monitor::read_mhz() const {
  double sum = 0;
  int64_t count = 0;
  for (const std::string& path : frequency_paths_) {
    if (const auto khz = files_.integer(path); khz && *khz > 0) {
      sum += static_cast<double>(*khz) / 1000;
      ++count;
    }
  }
  if (frequency_from_cpuinfo_) {
    for (const std::string& line : split(files_.read("/proc/cpuinfo").value_or(""), '\n')) {
      if (!line.starts_with("cpu MHz")) continue;
      const size_t digits = line.find_first_of("0123456789");
      double mhz = 0;
      if (digits != std::string::npos) {
        std::from_chars(line.data() + digits, line.data() + line.size(), mhz);
      }
      if (mhz <= 0) continue;
      sum += mhz;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

std::optional<double> Monitor::read_steal() {
  const auto now = read_cpu_ticks(files_);
  const auto before = std::exchange(last_ticks_, now);
  // Ticks are hundredths of a second: two samples may share one.
  if (!now || !before || now->total <= before->total || now->steal < before->steal) {
    return std::nullopt;
  }
  return static_cast<double>(now->steal - before->steal) /
         static_cast<double>(now->total - before->total);
}

std::optional<double> Monitor::read_power(int64_t now_ns) {
  if (energy_.empty()) return std::nullopt;
  const auto before_ns = std::exchange(last_energy_ns_, now_ns);
  double joules = 0;
  bool whole = before_ns && now_ns > *before_ns;
  for (EnergyCounter& counter : energy_) {
    const auto now = files_.integer(counter.path);
    const auto before = std::exchange(counter.last_uj, now);
    whole = whole && now && before;
    if (!whole) continue;
    const int64_t used = *now >= *before ? *now - *before : *now + counter.range_uj - *before;
    joules += static_cast<double>(used) / 1e6;
  }
  if (!whole) return std::nullopt;
  return joules / (static_cast<double>(now_ns - *before_ns) / 1e9);
}

std::optional<bool> Monitor::read_throttled() {
  if (throttle_paths_.empty()) return std::nullopt;
  int64_t count = 0;
  for (const std::string& path : throttle_paths_) count += files_.integer(path).value_or(0);
  const auto before = std::exchange(last_throttles_, count);
  return before ? std::optional(count > *before) : std::nullopt;
}

MachineSample Monitor::sample() {
  MachineSample sample;
  sample.cpu_mhz = read_mhz();
  sample.load_1min = read_load_1min(files_);
  sample.steal_share = read_steal();
  if (!temperature_path_.empty()) {
    if (const auto thousandths = files_.integer(temperature_path_)) {
      sample.temperature_c = static_cast<double>(*thousandths) / 1000;
    }
  }
  sample.power_w = read_power(clock_.monotonic_ns());
  sample.throttled = read_throttled();
  return sample;
}

}  // namespace assay
