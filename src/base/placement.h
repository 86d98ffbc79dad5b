// Where the kernel has put a process: what two processes of one program may differ by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

// What the kernel doesn't tell is absent.
struct Placement {
  std::optional<std::string> cpus_allowed;  // that its first thread may run on: "0-3,8"
  std::optional<uint64_t> last_cpu;         // that its first thread ran on last
  std::optional<uint64_t> numa_node;        // of that CPU
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> huge_page_bytes;  // of these, anonymous memory in transparent huge pages
  std::optional<bool> addresses_random;     // whether its address space was laid out at random
  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace assay
