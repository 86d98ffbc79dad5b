// Kernels to machine code on the CPU: the system compiler, the cache on disk, and the functions
// loaded into this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/codegen/kernel_cache.h"

namespace assay::engine {

// The system's C++ compiler as found at run time.
struct CpuCompiler {
  std::filesystem::path path;  // links resolved
  std::string version;         // first line of --version
  std::string sha256;          // of the file at `path`
  std::string target;          // the processor that -march=native stands for: model and features
  std::vector<std::string> flags;

  // $ASSAY_CXX, else c++ on PATH. An environment_error that says what was looked for and found.
  static Result<CpuCompiler> find();
};

struct CompileStats {
  int64_t compiled = 0;        // by the compiler
  int64_t loaded = 0;          // from the cache on disk
  int64_t reused = 0;          // in this process already
  double compile_seconds = 0;  // wall clock spent waiting for compilers
  double load_seconds = 0;     // finding, checking and loading of shared objects
};

class KernelLibrary {
 public:
  // Without a cache every kernel is compiled anew in every process.
  KernelLibrary(CpuCompiler compiler, std::optional<KernelCache> cache, size_t jobs);
  ~KernelLibrary();  // functions are void after
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // The functions of each kernel, in order. Kernels of one source are compiled once; several
  // missing ones side by side, `jobs` at a time. An environment_error holds the compiler's whole
  // stderr.
  Result<std::vector<KernelFunctions>> load(std::span<const Kernel> kernels);

  const CpuCompiler& compiler() const { return compiler_; }
  const CompileStats& stats() const { return stats_; }  // since the start

 private:
  struct Loaded;
  CpuCompiler compiler_;
  std::optional<KernelCache> cache_;
  size_t jobs_;
  CompileStats stats_;
  std::map<std::string, std::unique_ptr<Loaded>> loaded_;  // by key's digest
};

}  // namespace assay::engine
