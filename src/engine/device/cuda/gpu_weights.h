// A model's weights in a GPU's memory, in the layout that its kernels read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/graph/graph.h"
#include "engine/model/weights.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

// Uploads a weight when it is first asked for; all who ask for the same share one copy.
class GpuWeights {
 public:
  // All must outlive the object.
  GpuWeights(const Weights& weights, Driver& driver, ThreadPool& pool)
      : weights_(weights), driver_(driver), pool_(pool) {}

  // Address of the weight, laid out and converted as the binding asks; good as long as this object.
  // An environment_error if memory ends, here or there.
  Result<Address> address(const WeightSource& source, const WeightBinding& binding);

  uint64_t bytes() const { return bytes_; }  // on the GPU

 private:
  const Weights& weights_;
  Driver& driver_;
  ThreadPool& pool_;
  uint64_t bytes_ = 0;
  std::map<std::pair<std::vector<std::string>, std::string>, GpuBlock> copies_;
};

}  // namespace assay::engine::cuda
