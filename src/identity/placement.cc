// From /proc/PID.
#include "identity/placement.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string_view>

#include "base/text.h"

namespace assay {
namespace {

constexpr uint64_t kAddrNoRandomize = 0x0040000;  // of <sys/personality.h>

// A number of the kernel's; none of these is below 0.
std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t count = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  return read.ec == std::errc() && read.ptr == end ? std::optional(count) : std::nullopt;
}

// "2048 kB"
std::optional<uint64_t> bytes_of(const std::map<std::string, std::string>& values,
                                 const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return std::nullopt;
  const std::string& text = found->second;
  const size_t unit = text.find(" kB");
  if (unit == std::string::npos) return std::nullopt;
  const auto kilobytes = parse_count(std::string_view(text).substr(0, unit));
  if (!kilobytes || *kilobytes > UINT64_MAX / 1024) return std::nullopt;
  return *kilobytes * 1024;
}

// Field 39 of /proc/PID/stat; the second one, a name, may hold spaces and parentheses.
std::optional<uint64_t> last_cpu_of(std::string_view stat) {
  constexpr int kFieldsAfterName = 36;  // up to it, behind the third
  size_t at = stat.rfind(')');
  if (at == std::string_view::npos || at + 2 > stat.size()) return std::nullopt;
  at += 2;
  for (int field = 0; field < kFieldsAfterName; ++field) {
    at = stat.find(' ', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  return parse_count(stat.substr(at, stat.find(' ', at) - at));
}

std::optional<uint64_t> node_of(const MachineFiles& files, uint64_t cpu) {
  for (const std::string& name : files.list(fmt::format("/sys/devices/system/cpu/cpu{}", cpu))) {
    if (!name.starts_with("node")) continue;
    if (const auto node = parse_count(name.substr(4))) return node;
  }
  return std::nullopt;
}

std::optional<bool> randomised(const MachineFiles& files, const std::string& folder) {
  const auto text = files.line(folder + "/personality");
  const auto machine = files.integer("/proc/sys/kernel/randomize_va_space");
  if (machine == 0) return false;
  if (!text || !machine) return std::nullopt;
  uint64_t flags = 0;
  const auto end = text->data() + text->size();
  if (const auto read = std::from_chars(text->data(), end, flags, 16); read.ptr != end) {
    return std::nullopt;
  }
  return (flags & kAddrNoRandomize) == 0;
}

}  // namespace

Placement read_placement(const MachineFiles& files, int64_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  Placement placement;
  if (const auto status = files.read(folder + "/status")) {
    const auto values = parse_key_values(*status);
    if (const auto found = values.find("Cpus_allowed_list"); found != values.end()) {
      placement.cpus_allowed = found->second;
    }
  }
  if (const auto stat = files.line(folder + "/stat")) placement.last_cpu = last_cpu_of(*stat);
  if (placement.last_cpu) placement.numa_node = node_of(files, *placement.last_cpu);
  if (const auto rollup = files.read(folder + "/smaps_rollup")) {
    const auto values = parse_key_values(*rollup);
    placement.resident_bytes = bytes_of(values, "Rss");
    placement.huge_page_bytes = bytes_of(values, "AnonHugePages");
  }
  placement.addresses_random = randomised(files, folder);
  return placement;
}

}  // namespace assay
