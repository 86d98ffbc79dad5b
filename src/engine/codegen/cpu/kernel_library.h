// Kernels to machine code on the CPU: the system compiler, the cache on disk, and the functions
// loaded into this process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/compile_stats.h"
#include "engine/codegen/cpu/compiler.h"
#include "engine/codegen/cpu/kernel_functions.h"
#include "engine/codegen/cpu/shared_object.h"
#include "engine/codegen/kernel.h"
#include "engine/codegen/kernel_cache.h"

namespace assay::engine {

// Use from one thread at a time.
class KernelLibrary {
 public:
  // Without a cache every kernel is compiled anew in every process.
  KernelLibrary(CpuCompiler compiler, std::optional<KernelCache> cache, size_t jobs)
      : compiler_(std::move(compiler)), cache_(std::move(cache)), jobs_(jobs) {}
  // Functions are void after the destructor.
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // The functions of each kernel, in order. Kernels of one source are compiled once; several
  // missing ones side by side, `jobs` at a time. A compiler that hung once is not started again:
  // the error is then the first one's. An environment_error holds the compiler's whole
  // stderr; kernels that did compile stay compiled. A cache that can't be written is no error: see
  // CompileStats::unsaved.
  Result<std::vector<KernelFunctions>> load(std::span<const Kernel> kernels);
  // The same for sources as print_cpu() writes them.
  Result<std::vector<KernelFunctions>> load_sources(std::span<const std::string> sources);

  const CpuCompiler& compiler() const { return compiler_; }
  const CompileStats& stats() const { return stats_; }  // since the start

 private:
  // A source to be compiled, and the result. `key` holds the source.
  struct Job {
    KernelKey key;
    std::string digest = {};
    std::optional<Result<SharedObject>> object = {};
    std::string built = {};  // the object's file, for the cache
  };
  bool load_from_cache(const Job& job);
  Result<SharedObject> compile(Job& job) const;
  void compile_side_by_side(std::vector<Job>& jobs);
  Status compile_all(std::vector<Job>& jobs);
  void save(const Job& job);

  CpuCompiler compiler_;
  std::optional<KernelCache> cache_;
  size_t jobs_;
  CompileStats stats_;
  std::map<std::string, SharedObject> loaded_;  // by key's digest
  std::optional<Error> gave_up_;                // of the first compilation that hung
};

}  // namespace assay::engine
