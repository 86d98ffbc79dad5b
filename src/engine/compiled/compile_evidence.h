// A session's compilation, for people and for a bundle's evidence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/codegen/compile_stats.h"
#include "engine/codegen/toolchain.h"
#include "engine/device/device.h"
#include "engine/passes/pass.h"

namespace assay::engine {

// One specialisation that a frame made or tried to make.
struct CompileRecord {
  std::string guards;  // "batch == 1, q_len >= 2"
  // The guard of the latest graph that didn't hold and so caused this one. Empty for the first.
  std::string failed_guard, expected, found;
  double seconds = 0;  // passes, lowering, compiling, loading, packing of weights
  int64_t kernels_compiled = 0;
  int64_t kernels_loaded = 0;  // from the cache on disk
};

struct FrameRuns {
  int64_t compiled = 0;
  int64_t fallbacks = 0;  // eager though compilation was asked for
};

// Evidence of one frame, since the session's start.
struct FrameEvidence {
  bool requested = false;
  std::vector<CompileRecord> graphs;
  FrameRuns runs;
  // Sizes that are symbols in the graph that ran last because earlier runs had other ones
  // (Dynamic::kAuto): its kernels would have constants there if it had run first.
  std::vector<std::string> became_symbols;
  LoadedStep::Code code = {};  // of the graph that ran last; empty: none did
  bool limit_hit = false;
  std::string fallback;  // why it runs eager from now on, whole; empty: it doesn't
};

struct CompileEvidence {
  std::optional<Toolchain> toolchain;  // absent: none was needed or found
  CompileStats kernels;
  std::vector<PassReport> passes;
  FrameEvidence prefill, decode;
  uint64_t packed_bytes = 0;
  std::vector<std::string> notes;
};

}  // namespace assay::engine
