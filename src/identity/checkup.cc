// Findings on a machine's fitness for measuring.
#include "identity/checkup.h"

#include <algorithm>
#include <array>

#include "base/text/counts.h"
#include "base/text/text.h"
#include "identity/identity.h"

namespace assay {
namespace {

Check threads_check(const Host& host) {
  const auto cpus = host.usable_cpus();
  if (!cpus) {
    return {"threads", CheckStatus::kLimited, "the kernel does not report which CPUs are usable",
            "mount /proc"};
  }
  std::string finding = counted_about(*cpus, "usable CPU");
  if (!host.cpus_online.empty()) finding += fmt::format(" of {} online", host.cpus_online.size());
  if (host.smt_active.value_or(false)) {
    return {"threads", CheckStatus::kLimited,
            finding +
                "; two hardware threads share a core, and an arm with one thread for each "
                "gains little and varies more",
            "give arms `threads`: the number of cores"};
  }
  return {"threads", CheckStatus::kOk, finding};
}

Check memory_check(const Host& host) {
  constexpr double kLittle = 1e9;
  if (!host.memory_bytes) {
    return {"memory", CheckStatus::kLimited, "the kernel does not report the size of the memory",
            "mount /proc"};
  }
  std::string finding = format_bytes(static_cast<double>(*host.memory_bytes));
  if (!host.memory_available_bytes) return {"memory", CheckStatus::kOk, finding};
  const auto available = static_cast<double>(*host.memory_available_bytes);
  finding += fmt::format(", {} available", format_bytes(available));
  if (available >= kLittle) return {"memory", CheckStatus::kOk, finding};
  return {"memory", CheckStatus::kLimited, finding,
          "end other programs: weights that don't fit "
          "are read from the disk over and over"};
}

Check huge_pages_check(const Host& host) {
  const std::string fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)";
  if (!host.transparent_huge_pages) {
    return {"huge_pages", CheckStatus::kMissing, "the kernel has no transparent huge pages"};
  }
  if (*host.transparent_huge_pages == "never") {
    return {"huge_pages", CheckStatus::kLimited, "switched off (never)", fix};
  }
  return {"huge_pages", CheckStatus::kOk, *host.transparent_huge_pages};
}

Check clock_check(const Host& host) {
  constexpr std::array<std::string_view, 5> kFast = {"tsc", "kvm-clock", "arch_sys_counter",
                                                     "hyperv_clocksource_tsc_page", "xen"};
  if (!host.clocksource) {
    return {"clock_source", CheckStatus::kLimited, "the kernel does not report its clock source",
            "mount /sys"};
  }
  if (std::ranges::find(kFast, *host.clocksource) != kFast.end()) {
    return {"clock_source", CheckStatus::kOk, *host.clocksource};
  }
  return {"clock_source", CheckStatus::kLimited,
          fmt::format("{}: reading the time costs a microsecond or more", *host.clocksource),
          "boot with clocksource=tsc if the processor's counter is stable"};
}

Check build_check(const BuildInfo& build) {
  const std::vector<std::string> warnings = build_warnings(build);
  if (!warnings.empty()) {
    return {"build", CheckStatus::kLimited, warnings.front(), "cmake --preset release"};
  }
  return {"build", CheckStatus::kOk, fmt::format("{}, {}", build.build_type, build.compiler)};
}

Check quiet_check(const Host& host) {
  const std::vector<std::string> warnings = host_warnings(host, 0);
  if (warnings.empty()) {
    return {"quiet", CheckStatus::kOk,
            host.load_1min ? fmt::format("load average {:.2f}", *host.load_1min)
                           : "the kernel reports no disturbance"};
  }
  return {
      "quiet", CheckStatus::kLimited, join(warnings, "; "),
      "wait, or end other programs; an interleaved order spreads the disturbance over all arms"};
}

// "none readable" with its reason for a sensor that isn't there.
Check missing_sensor(std::string name, const Host& host, bool hidden, std::string fix) {
  if (hidden) {
    return {std::move(name), CheckStatus::kMissing,
            "the sensor exists, but this user may not read it", std::move(fix)};
  }
  if (host.hypervisor) {
    return {std::move(name), CheckStatus::kMissing,
            "this virtual machine does not expose the sensor"};
  }
  return {std::move(name), CheckStatus::kMissing, "the kernel offers no such sensor",
          "load the processor's driver (cpufreq, coretemp or k10temp, intel_rapl_common)"};
}

}  // namespace

std::string_view check_status_name(CheckStatus status) {
  switch (status) {
    case CheckStatus::kLimited:
      return "limited";
    case CheckStatus::kMissing:
      return "missing";
    case CheckStatus::kOk:
      break;
  }
  return "ok";
}

std::vector<Check> machine_checks(const Host& host, const BuildInfo& build) {
  return {threads_check(host), memory_check(host), huge_pages_check(host),
          clock_check(host),   quiet_check(host),  build_check(build)};
}

std::vector<Check> sensor_checks(const MachineFiles& files, const Host& host,
                                 const MachineSample& sample) {
  std::vector<Check> checks;
  if (sample.cpu_mhz) {
    checks.push_back(
        {"cpu_frequency", CheckStatus::kOk, fmt::format("{:.0f} MHz", *sample.cpu_mhz)});
  } else {
    checks.push_back(missing_sensor("cpu_frequency", host, false, ""));
  }
  if (sample.temperature_c) {
    checks.push_back(
        {"temperature", CheckStatus::kOk, fmt::format("{:.1f} C", *sample.temperature_c)});
  } else {
    checks.push_back(missing_sensor("temperature", host, false, ""));
  }
  if (sample.power_w) {
    checks.push_back({"power", CheckStatus::kOk, fmt::format("{:.1f} W", *sample.power_w)});
  } else {
    const bool hidden = files.line("/sys/class/powercap/intel-rapl:0/name").has_value() &&
                        !files.line("/sys/class/powercap/intel-rapl:0/energy_uj");
    checks.push_back(missing_sensor(
        "power", host, hidden, "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj (as root)"));
  }
  return checks;
}

Check disk_check(Result<double> free_bytes) {
  constexpr double kLittle = 5e9;
  if (!free_bytes) return {"disk_space", CheckStatus::kMissing, free_bytes.error().message};
  const std::string finding = format_bytes(*free_bytes) + " free here";
  if (*free_bytes >= kLittle) return {"disk_space", CheckStatus::kOk, finding};
  return {"disk_space", CheckStatus::kLimited, finding,
          "free some space: a checkpoint of 1B parameters takes 2 to 5 GB"};
}

}  // namespace assay
