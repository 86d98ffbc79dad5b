// Reads a process's placement from /proc/PID.
#include "identity/placement.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string_view>

#include "base/text/text.h"

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

constexpr int kStartOfStack = 28;
constexpr int kLastCpu = 39;

// A field of /proc/PID/stat from the fourth on; the second one, a name, may hold spaces and
// parentheses.
std::optional<uint64_t> stat_field(std::string_view stat, int number) {
  size_t at = stat.rfind(')');
  if (at == std::string_view::npos || at + 2 > stat.size()) return std::nullopt;
  at += 2;
  for (int field = 3; field < number; ++field) {
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

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// A line of /proc/PID/maps: "begin-end perms offset device inode   name".
struct Mapping {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  std::string name;  // of a file, "[heap]" and the like; empty: memory of no file
};

std::optional<uint64_t> parse_address(std::string_view text) {
  uint64_t address = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, address, 16);
  return read.ec == std::errc() && read.ptr == end ? std::optional(address) : std::nullopt;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  constexpr int kNameField = 5;
  const size_t dash = line.find('-');
  const size_t space = line.find(' ');
  if (dash == std::string_view::npos || space == std::string_view::npos || dash > space) {
    return std::nullopt;
  }
  const auto begin = parse_address(line.substr(0, dash));
  const auto end = parse_address(line.substr(dash + 1, space - dash - 1));
  if (!begin || !end || *end < *begin) return std::nullopt;
  size_t at = 0;
  for (int field = 0; field < kNameField && at != std::string_view::npos; ++field) {
    at = line.find(' ', at);
    at = line.find_first_not_of(' ', at);
  }
  return Mapping{*begin, *end - *begin,
                 at == std::string_view::npos ? "" : std::string(line.substr(at))};
}

// A file mapped in several pieces has the address of its first piece.
std::optional<AddressOffsets> offsets_of(const MachineFiles& files, const std::string& folder) {
  const auto maps = files.read(folder + "/maps");
  if (!maps || maps->empty()) return std::nullopt;
  AddressOffsets offsets;
  std::map<std::string, Mapping> of_files;
  uint64_t largest = 0;
  for (const std::string& line : split(*maps, '\n')) {
    const auto mapping = parse_mapping(line);
    if (!mapping) continue;
    const uint64_t offset = mapping->begin % kHugePage;
    if (!offsets.program) offsets.program = offset;
    if (mapping->name == "[heap]") offsets.heap = offset;
    if (mapping->name.empty() && mapping->bytes > largest) {
      largest = mapping->bytes;
      offsets.largest_memory = offset;
    }
    if (!mapping->name.starts_with('/')) continue;
    const auto [at, fresh] = of_files.try_emplace(mapping->name, *mapping);
    if (!fresh) at->second.bytes += mapping->bytes;
  }
  largest = 0;
  for (const auto& [name, mapping] : of_files) {
    if (mapping.bytes <= largest) continue;
    largest = mapping.bytes;
    offsets.largest_file = mapping.begin % kHugePage;
  }
  if (const auto stat = files.line(folder + "/stat")) {
    // 0 where the reader may not know.
    const auto stack = stat_field(*stat, kStartOfStack);
    if (stack.value_or(0) > 0) offsets.stack = *stack % kHugePage;
  }
  return offsets;
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
    placement.locked_bytes = bytes_of(values, "VmLck");
  }
  if (const auto stat = files.line(folder + "/stat"))
    placement.last_cpu = stat_field(*stat, kLastCpu);
  if (placement.last_cpu) placement.numa_node = node_of(files, *placement.last_cpu);
  if (const auto rollup = files.read(folder + "/smaps_rollup")) {
    const auto values = parse_key_values(*rollup);
    placement.resident_bytes = bytes_of(values, "Rss");
    placement.huge_page_bytes = bytes_of(values, "AnonHugePages");
  }
  placement.addresses_random = randomised(files, folder);
  if (const auto setting = files.integer("/proc/sys/kernel/randomize_va_space")) {
    if (*setting >= 0) placement.address_randomisation = static_cast<uint64_t>(*setting);
  }
  placement.offsets = offsets_of(files, folder);
  return placement;
}

}  // namespace assay
