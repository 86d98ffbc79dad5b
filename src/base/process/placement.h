// The kernel's placement of a process, in which two processes of one program may differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

// Addresses at which parts of a process' memory begin, modulo a huge page (2 MiB), for comparing
// two processes: the parts that share a set of a cache or a page depend on them.
struct AddressOffsets {
  std::optional<uint64_t> program;
  std::optional<uint64_t> heap;
  std::optional<uint64_t> stack;  // of the first thread, as it started: behind its environment
  // The mapped file with the most mapped bytes: weights that are used as they are stored.
  std::optional<uint64_t> largest_file;
  std::optional<uint64_t> largest_memory;  // of no file: packed weights, an arena, a cache
  friend bool operator==(const AddressOffsets&, const AddressOffsets&) = default;
};

// A member that the kernel doesn't tell is absent.
struct Placement {
  std::optional<std::string> cpus_allowed;  // that its first thread may run on: "0-3,8"
  std::optional<uint64_t> last_cpu;         // that its first thread ran on last
  std::optional<uint64_t> numa_node;        // of that CPU
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> huge_page_bytes;  // of these, anonymous memory in transparent huge pages
  std::optional<bool> addresses_random;     // true: its address space was laid out at random
  // The machine's setting: 0 nothing is random, 1 all but the heap, 2 all.
  std::optional<uint64_t> address_randomisation = {};
  std::optional<uint64_t> locked_bytes = {};  // which the kernel may not move or write out
  std::optional<AddressOffsets> offsets = {};
  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace assay
