// The code of a step's kernels on a GPU: of each the form that a run's sizes choose, loaded when it
// is first needed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/kernel_store.h"
#include "engine/device/cuda/many_rows.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

class StepForms {
 public:
  // References must outlive the object. `any_sizes`: one form for runs of all sizes.
  StepForms(StepPlan& plan, KernelStore& kernels, Driver& driver, bool any_sizes);

  // For runs of this batch and q_len, whatever ran before: the plan's kernels get these run_sizes.
  // An environment_error is the compiler's or the driver's; the next call then tries again.
  ::assay::Status choose(const DimValues& dims);

  // The next two describe the forms that were chosen last.
  // The part of a multiprocessor's memory that is kept for blocks, as Driver::share_memory() has
  // it, where some kernels of a step fill it; 0: each kernel has what the driver chooses.
  int shared_percent() const { return shared_percent_; }
  Result<Function> function(size_t kernel, const CudaLaunch& launch);
  const std::string& text_sha256(size_t kernel) const { return chosen_[kernel].sha256; }

 private:
  StepPlan& plan_;
  KernelStore& kernels_;
  Driver& driver_;
  bool any_sizes_;
  std::vector<NarrowBuffer> narrow_;  // in steps of decoding for many rows
  int shared_percent_ = 0;
  struct Loaded {
    Module module = nullptr;
    std::string sha256;        // of the text
    bool needs_cache = false;  // it reads a weight through the cache, and others leave little
  };
  // Loaded modules by kernel; of a kernel by form, narrowness of values, and shared_percent().
  std::vector<std::map<std::tuple<CudaForm, bool, int>, Loaded>> loaded_;
  std::vector<Loaded> chosen_;                                    // by kernel
  std::optional<std::pair<int64_t, int64_t>> chosen_for_;         // batch and q_len
  std::map<std::pair<Module, std::string>, Function> functions_;  // by entry
};

}  // namespace assay::engine::cuda
