// The machine: processor, memory, kernel, and its present load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "identity/machine_files.h"

namespace assay {

// Everything the machine doesn't tell is absent.
struct Host {
  std::optional<std::string> cpu_model;  // "Intel(R) Xeon(R) Processor @ 2.50GHz"
  std::optional<int64_t> cpu_family, cpu_model_number, cpu_stepping;
  std::optional<std::string> microcode;
  std::vector<std::string> cpu_flags;
  std::vector<int64_t> cpus_online;
  std::vector<int64_t> cpus_allowed;  // affinity of this process
  std::optional<double> cpu_quota;    // CPUs' worth of time that the control group allows
  std::optional<int64_t> sockets;
  std::optional<bool> smt_active;
  std::optional<std::string> governor;          // of the first CPU
  std::optional<std::string> last_level_cache;  // "36608K"
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> memory_available_bytes;
  std::optional<int64_t> numa_nodes;
  std::optional<std::string> hypervisor;  // its name, or "present"
  std::optional<std::string> kernel;      // "6.1.0-13-amd64"
  std::optional<std::string> boot_id;     // another on every machine, and after every start of it
  std::optional<std::string> distribution;
  std::string c_library;                              // "glibc 2.36"
  std::optional<std::string> transparent_huge_pages;  // always | madvise | never
  std::optional<std::string> clocksource;             // tsc, kvm-clock, ...
  std::optional<double> load_1min;
  std::optional<double> steal_share;  // of all CPU time since boot

  // CPUs that this process can use at once: the smaller of affinity and quota. Absent: neither
  // is known.
  std::optional<double> usable_cpus() const;
};

Host read_host(const MachineFiles& files);
Json host_to_json(const Host& host);

// The flags that kernels choose their instructions by, out of all of the CPU's.
std::vector<std::string> simd_flags(const std::vector<std::string>& flags);

// CPU time of the whole machine since boot, in ticks of the kernel; absent without /proc/stat.
struct CpuTicks {
  int64_t total = 0;
  int64_t steal = 0;
};
std::optional<CpuTicks> read_cpu_ticks(const MachineFiles& files);
std::optional<double> read_load_1min(const MachineFiles& files);

// Reasons to doubt measurements on this machine, one sentence each. `threads` is the number that
// the measurement will use; 0: as many as it may.
std::vector<std::string> host_warnings(const Host& host, int64_t threads);

}  // namespace assay
