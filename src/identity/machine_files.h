// The kernel's files about the machine (/proc, /sys, /etc), under a root that tests can fake.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class MachineFiles {
 public:
  explicit MachineFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // `path` is absolute, as on the machine. Absent: missing, unreadable, or over 4 MB.
  std::optional<std::string> read(std::string_view path) const;
  // The first line without its line end; absent when that is empty too.
  std::optional<std::string> line(std::string_view path) const;
  // The first line as a decimal integer.
  std::optional<int64_t> integer(std::string_view path) const;
  // Names in the folder, sorted; none when it is missing.
  std::vector<std::string> list(std::string_view path) const;

 private:
  std::filesystem::path resolve(std::string_view path) const;

  std::filesystem::path root_;
};

// "key : value" lines (as of /proc/cpuinfo, /proc/meminfo) up to the first empty line.
std::map<std::string, std::string> parse_key_values(std::string_view text);
// The whole text as a decimal integer.
std::optional<int64_t> parse_integer(std::string_view text);
// "0-3,8" to 0 1 2 3 8; empty for a text that isn't such a list.
std::vector<int64_t> parse_cpu_list(std::string_view text);

}  // namespace assay
