// Kernels to code on a GPU: in this process, else from the cache on disk, else by NVRTC.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/compile_stats.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cuda/driver.h"

namespace assay::engine::cuda {

// One thread at a time.
class KernelStore {
 public:
  // The driver must outlive the object. Without a cache every kernel is compiled in every process.
  KernelStore(Driver& driver, Nvrtc nvrtc, std::optional<KernelCache> cache)
      : driver_(driver), nvrtc_(std::move(nvrtc)), cache_(std::move(cache)) {}
  ~KernelStore();  // what it gave is void then
  KernelStore(const KernelStore&) = delete;
  KernelStore& operator=(const KernelStore&) = delete;

  // The module of each source, as print_cuda() writes them, in order; equal sources share one. An
  // environment_error holds NVRTC's whole log. A cache that can't be written is no error: see
  // CompileStats::unsaved.
  Result<std::vector<Module>> load(std::span<const std::string> sources);

  const CompileStats& stats() const { return stats_; }  // since the start
  const Nvrtc& nvrtc() const { return nvrtc_; }

 private:
  Result<std::string> machine_code(const KernelKey& key);

  Driver& driver_;
  Nvrtc nvrtc_;
  std::optional<KernelCache> cache_;
  CompileStats stats_;
  std::map<std::string, Module> modules_;  // by source
};

}  // namespace assay::engine::cuda
