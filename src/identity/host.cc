// The machine, out of the kernel's files.
#include "identity/host.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/text/counts.h"
#include "base/text/text.h"

namespace assay {
namespace {

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> parts = split(text, ' ');
  std::erase(parts, "");
  return parts;
}

std::optional<std::string> find(const std::map<std::string, std::string>& values,
                                const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> find_integer(const std::map<std::string, std::string>& values,
                                    const std::string& key) {
  const auto text = find(values, key);
  return text ? parse_integer(*text) : std::nullopt;
}

// "16316412 kB"
std::optional<int64_t> find_kib(const std::map<std::string, std::string>& values,
                                const std::string& key) {
  const auto text = find(values, key);
  if (!text) return std::nullopt;
  const auto kib = parse_integer(std::string_view(*text).substr(0, text->find(' ')));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

void read_cpu(const MachineFiles& files, Host& host) {
  const auto values = parse_key_values(files.read("/proc/cpuinfo").value_or(""));
  host.cpu_model = find(values, "model name");
  const auto implementer = find(values, "CPU implementer");
  if (!host.cpu_model && implementer) {  // Arm has numbers only
    host.cpu_model = fmt::format("Arm implementer {} part {}", *implementer,
                                 find(values, "CPU part").value_or("unknown"));
  }
  host.cpu_family = find_integer(values, "cpu family");
  host.cpu_model_number = find_integer(values, "model");
  host.cpu_stepping = find_integer(values, "stepping");
  host.microcode = find(values, "microcode");
  host.cpu_flags = words(find(values, "flags").value_or(find(values, "Features").value_or("")));
}

// Version 2 of control groups, then version 1; "max" and -1 mean no limit.
std::optional<double> read_quota(const MachineFiles& files) {
  std::optional<double> quota;
  std::optional<double> period;
  if (const auto line = files.line("/sys/fs/cgroup/cpu.max")) {
    const auto parts = words(*line);
    if (parts.size() == 2) {
      quota = parse_double(parts[0]);
      period = parse_double(parts[1]);
    }
  } else {
    const auto v1_quota = files.integer("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    const auto v1_period = files.integer("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (v1_quota && v1_period) {
      quota = static_cast<double>(*v1_quota);
      period = static_cast<double>(*v1_period);
    }
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

void read_topology(const MachineFiles& files, Host& host) {
  const std::string cpus = "/sys/devices/system/cpu/";
  host.cpus_online = parse_cpu_list(files.line(cpus + "online").value_or(""));
  const auto status = parse_key_values(files.read("/proc/self/status").value_or(""));
  host.cpus_allowed = parse_cpu_list(find(status, "Cpus_allowed_list").value_or(""));
  host.cpu_quota = read_quota(files);
  std::set<int64_t> sockets;
  for (int64_t cpu : host.cpus_online) {
    const auto id = files.integer(fmt::format("{}cpu{}/topology/physical_package_id", cpus, cpu));
    if (id) sockets.insert(*id);
  }
  if (!sockets.empty()) host.sockets = static_cast<int64_t>(sockets.size());
  if (const auto active = files.integer(cpus + "smt/active")) host.smt_active = *active == 1;
  host.governor = files.line(cpus + "cpu0/cpufreq/scaling_governor");
  for (int index = 0; index < 8; ++index) {  // the last one listed is the last level
    const auto size = files.line(fmt::format("{}cpu0/cache/index{}/size", cpus, index));
    if (size) host.last_level_cache = size;
  }
  const size_t nodes =
      parse_cpu_list(files.line("/sys/devices/system/node/online").value_or("")).size();
  if (nodes > 0) host.numa_nodes = static_cast<int64_t>(nodes);
}

std::optional<std::string> read_hypervisor(const MachineFiles& files, const Host& host) {
  if (const auto type = files.line("/sys/hypervisor/type")) return type;
  if (std::ranges::find(host.cpu_flags, "hypervisor") == host.cpu_flags.end()) return std::nullopt;
  const auto vendor = files.line("/sys/class/dmi/id/sys_vendor");
  const auto product = files.line("/sys/class/dmi/id/product_name");
  if (vendor && product) return *vendor + " " + *product;
  return vendor.value_or("present");
}

std::optional<std::string> read_distribution(const MachineFiles& files) {
  for (std::string line : split(files.read("/etc/os-release").value_or(""), '\n')) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    line.erase(0, line.find('=') + 1);
    std::erase(line, '"');
    return line;
  }
  return std::nullopt;
}

// "always [madvise] never" to madvise.
std::optional<std::string> chosen_word(const std::optional<std::string>& line) {
  if (!line) return std::nullopt;
  const size_t open = line->find('[');
  const size_t close = line->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return line->substr(open + 1, close - open - 1);
}

}  // namespace

std::optional<double> Host::usable_cpus() const {
  if (cpus_allowed.empty()) return cpu_quota;
  const auto allowed = static_cast<double>(cpus_allowed.size());
  return cpu_quota ? std::min(allowed, *cpu_quota) : allowed;
}

std::optional<CpuTicks> read_cpu_ticks(const MachineFiles& files) {
  // cpu user nice system idle iowait irq softirq steal guest guest_nice; the guests are counted in
  // user and nice already.
  const auto line = files.line("/proc/stat");
  if (!line) return std::nullopt;
  const std::vector<std::string> fields = words(*line);
  constexpr size_t kSteal = 8;
  if (fields.size() <= kSteal || fields[0] != "cpu") return std::nullopt;
  CpuTicks ticks;
  for (size_t i = 1; i <= kSteal; ++i) {
    const auto count = parse_integer(fields[i]);
    if (!count) return std::nullopt;
    ticks.total += *count;
    if (i == kSteal) ticks.steal = *count;
  }
  return ticks;
}

std::optional<double> read_load_1min(const MachineFiles& files) {
  const auto line = files.line("/proc/loadavg");
  return line ? parse_double(*line) : std::nullopt;
}

Host read_host(const MachineFiles& files) {
  Host host;
  read_cpu(files, host);
  read_topology(files, host);
  const auto memory = parse_key_values(files.read("/proc/meminfo").value_or(""));
  host.memory_bytes = find_kib(memory, "MemTotal");
  host.memory_available_bytes = find_kib(memory, "MemAvailable");
  host.hypervisor = read_hypervisor(files, host);
  host.kernel = files.line("/proc/sys/kernel/osrelease");
  host.boot_id = files.line("/proc/sys/kernel/random/boot_id");
  host.distribution = read_distribution(files);
  host.c_library = fmt::format("glibc {}", gnu_get_libc_version());
  host.transparent_huge_pages =
      chosen_word(files.line("/sys/kernel/mm/transparent_hugepage/enabled"));
  host.clocksource = files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  host.load_1min = read_load_1min(files);
  if (const auto ticks = read_cpu_ticks(files); ticks && ticks->total > 0) {
    host.steal_share = static_cast<double>(ticks->steal) / static_cast<double>(ticks->total);
  }
  return host;
}

std::vector<std::string> simd_flags(const std::vector<std::string>& flags) {
  constexpr std::array<std::string_view, 12> kPrefixes = {
      "sse4", "ssse3", "avx", "fma", "f16c", "amx", "bmi", "asimd", "sve", "bf16", "i8mm", "sme"};
  std::vector<std::string> chosen;
  for (const std::string& flag : flags) {
    if (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return flag.starts_with(p); })) {
      chosen.push_back(flag);
    }
  }
  return chosen;
}

std::vector<std::string> host_warnings(const Host& host, int64_t threads) {
  // Half a CPU's worth of other work for each CPU moves latencies visibly; so does one tick in
  // fifty stolen.
  constexpr double kHighLoad = 0.5;
  constexpr double kHighSteal = 0.02;
  std::vector<std::string> warnings;
  const auto cpus = host.usable_cpus();
  if (cpus && host.load_1min && *host.load_1min > kHighLoad * *cpus) {
    warnings.push_back(fmt::format("loaded machine: the load average was {:.2f} on {}",
                                   *host.load_1min, counted_about(*cpus, "usable CPU")));
  }
  if (host.steal_share && *host.steal_share > kHighSteal) {
    warnings.push_back(fmt::format(
        "shared machine: the hypervisor gave {:.1f} % of the CPU time since boot to other guests",
        *host.steal_share * 100));
  }
  if (cpus && static_cast<double>(threads) > *cpus) {
    warnings.push_back(fmt::format("{} on {}: they will wait for one another",
                                   counted(static_cast<int64_t>(threads), "thread"),
                                   counted_about(*cpus, "usable CPU")));
  }
  if (cpus && host.cpu_quota && !host.cpus_allowed.empty() &&
      *host.cpu_quota < static_cast<double>(host.cpus_allowed.size())) {
    warnings.push_back(
        fmt::format("limited CPU time: the control group allows the time of {:.3g} CPUs on {} "
                    "CPUs, so the kernel pauses the process now and then",
                    *host.cpu_quota, host.cpus_allowed.size()));
  }
  if (host.governor == "powersave" || host.governor == "conservative") {
    warnings.push_back(
        fmt::format("frequency governor \"{}\": the clock may be low when a measurement starts",
                    *host.governor));
  }
  return warnings;
}

}  // namespace assay
