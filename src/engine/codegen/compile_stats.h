// Counts and seconds of turning kernels into machine code, on any target.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace assay::engine {

struct CompileStats {
  int64_t compiled = 0;        // by the compiler
  int64_t loaded = 0;          // from the cache on disk
  int64_t reused = 0;          // in this process already
  int64_t unsaved = 0;         // of the compiled, those that the cache on disk didn't take
  std::string unsaved_reason;  // of the last of them
  int64_t refused = 0;         // files of the cache that others may have written, compiled anew
  std::string refused_reason;  // of the last of them
  std::string gave_up;         // why the compiler isn't started again: it hung; empty: it is
  double compile_seconds = 0;  // wall clock spent waiting for compilers
  double load_seconds = 0;     // finding, checking and loading of shared objects

  // `reason` comes from KernelCache::take_refusal(); empty: nothing to note.
  void note_refusal(std::string reason) {
    if (reason.empty()) return;
    ++refused;
    refused_reason = std::move(reason);
  }
};

}  // namespace assay::engine
