// Where the kernel has put a process: what two processes of one program may differ by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "identity/machine_files.h"

namespace assay {

// What the kernel doesn't tell is absent.
struct Placement {
  std::optional<std::string> cpus_allowed;  // that its first thread may run on: "0-3,8"
  std::optional<int64_t> last_cpu;          // that its first thread ran on last
  std::optional<int64_t> numa_node;         // of that CPU
  std::optional<int64_t> resident_bytes;
  std::optional<int64_t> huge_page_bytes;  // of these, anonymous memory in transparent huge pages
  std::optional<bool> addresses_random;    // whether its address space was laid out at random
};

// Of a living process; takes the kernel a walk over its memory map, so never beside a timed region.
Placement read_placement(const MachineFiles& files, int64_t pid);

// All members, null where absent.
Json placement_to_json(const Placement& placement);

}  // namespace assay
