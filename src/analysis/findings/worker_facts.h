// Workers' reports beside the timings, cell by cell: cost of compilation, and profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/evidence.h"
#include "base/records/counter.h"

namespace assay {

// Compile cost of a cell whose mode asks for a compiler, or that captured graphs without one.
// Counters are the cell's as the torch worker reports them; the native worker's, and the torch
// worker's before 2026-11-22, are the process's at the end of the cell, those of cells that it
// served before too. Absent: not reported.
struct CompileCost {
  size_t stratum = 0;
  std::string arm = {};
  CompilerReal compiler_real = CompilerReal::kUnproven;
  // Time until the first sample could be taken: of the cell's first process, which compiles all
  // that isn't kept, and the median of the later ones, which may load its kernels. Absent: no such
  // process was prepared.
  std::optional<double> prepare_s = {};
  // The first process compiled no kernel: an earlier run, or the process that gave the tokens of
  // the parity check, had left them on disk.
  bool first_loaded = false;
  std::optional<double> later_prepare_s = {};
  int64_t later_processes = 0;
  std::optional<double> compile_s = {};  // in the compiler, of the process whose counts these are
  // Seconds in the compiler while the arm gave the tokens of the parity check, of the cell's
  // scenario and batch; as a rule in a process of its own, whose kernels the measured ones may have
  // loaded.
  std::optional<double> parity_compile_s = {};
  Counts counts = {};
  std::string problem = {};  // fallback, gate or failure, the first line; empty: none
};

struct ProfiledOperation {
  std::string name;
  int64_t calls = 0;
  int64_t total_ns = 0;
};

// One traced repetition of a cell: slower than the timed ones.
struct CellProfile {
  size_t stratum = 0;
  std::string arm;
  std::string missing;  // why there is none; empty: there is one
  std::string device, counts;
  std::optional<int64_t> wall_ns, kernels, distinct_kernels, launch_calls;
  std::optional<int64_t> gpu_busy_ns, gpu_gap_ns, copies, synchronizations;
  std::vector<ProfiledOperation> top;
};

}  // namespace assay
