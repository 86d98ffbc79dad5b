// A study's options of compilation, and the counters that show its work: Dynamo's names and
// meanings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/codegen/cpu/compiler.h"

namespace assay::engine {

enum class Dynamic {
  kFalse,  // specialise on every size that a frame sees
  kTrue,   // sizes are symbols from the first
  kAuto,   // specialise first; a size that changed becomes a symbol at the second graph
};

std::optional<Dynamic> parse_dynamic(std::string_view name);  // false | true | auto

// True if the engine itself was built with assertions; its users may be built otherwise.
bool verify_passes_by_default();

inline constexpr int64_t kMostBucket = 65'536;

// A frame is one phase's step, prefill or decode: each has its guards, graphs and limit of its own.
struct FrameOptions {
  bool prefill = false;  // which frames are compiled; the other runs eager (a split arm)
  bool decode = false;
  Dynamic dynamic = Dynamic::kAuto;
  // Graphs of a frame; one that would need another runs eager for good. At least 1: bad_input.
  int64_t recompile_limit = 8;
  // Prompts are padded on the left to a multiple of this before prefill; 0: they aren't. At most
  // kMostBucket: bad_input.
  int64_t bucket = 0;
};

struct CompilerOptions {
  std::vector<std::string> disabled_passes = {};
  // Compares each pass's result with its input: by default if the engine was built for
  // debugging.
  bool verify_passes = verify_passes_by_default();
  // The reason why the compiler is not to be tried, found by an earlier trial; empty: it is.
  std::string no_compiler = {};
  // The processor's compiler, if somebody has found it already; absent: it is looked for.
  std::optional<CpuCompiler> compiler = {};
  // Kernels on disk. Absent: each process compiles its own.
  std::optional<std::filesystem::path> kernel_cache = {};
  // A processor's packed weights are kept there too, and mapped from there by the next process: a
  // start then takes neither their time nor their memory.
  bool keeps_weights = false;
};

struct CompileOptions : FrameOptions, CompilerOptions {};

// Since the session's start.
struct CompileCounters {
  int64_t unique_graphs = 0;         // specialisations made, over the frames
  int64_t recompiles = 0;            // ... except each frame's first
  int64_t recompile_limit_hits = 0;  // frames that gave up
  int64_t kernels_compiled = 0;      // by the compiler
  int64_t kernels_loaded = 0;        // from the cache on disk
  int64_t fallbacks = 0;  // runs of a frame that was to be compiled and ran eager: limit or failure
  // On a GPU, as LaunchCounts has them:
  int64_t graph_captures = 0;
  int64_t graph_replays = 0;
  int64_t kernel_launches = 0;
};

}  // namespace assay::engine
