// Kernels to code on a GPU: in this process, else from the cache on disk, else by NVRTC.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

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

  // The module of a source as print_cuda() writes it; equal sources share one, but for those
  // with another `shared_percent` (StepForms): that is a property of the loaded function, and a
  // step must not change another's. An environment_error holds NVRTC's whole log. A cache that
  // can't be written is no error: see CompileStats::unsaved.
  Result<Module> load(const std::string& source, int shared_percent);

  const CompileStats& stats() const { return stats_; }  // since the start
  const Nvrtc& nvrtc() const { return nvrtc_; }

 private:
  Result<std::string> machine_code(const KernelKey& key);

  Driver& driver_;
  Nvrtc nvrtc_;
  std::optional<KernelCache> cache_;
  CompileStats stats_;
  std::map<std::pair<std::string, int>, Module> modules_;  // by source and `shared_percent`
};

}  // namespace assay::engine::cuda
