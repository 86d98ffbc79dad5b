// Memory of an eager step's outputs, as a framework has it: from a pool when a kernel is launched,
// and back to it behind the last kernel that reads them. Work on the GPU is in the order of
// launches, so that the next kernel may have what an earlier one still reads.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/result.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/memory/buffer_pool.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

class EagerOutputs {
 public:
  // Both must outlive the object; `plan` as narrow_values() leaves it.
  EagerOutputs(const StepPlan& plan, BufferPool& pool);

  // Gives everything back: the outputs of the run before too.
  void start() { made_.clear(); }
  // Before kernel `index` is launched, in a run of these sizes: memory for what it writes.
  ::assay::Status make(size_t index, const DimValues& dims);
  // Behind it: what no later kernel reads goes back, but for the graph's outputs.
  void release(size_t index);

  Address address(ValueId base) const { return address_of(made_.at(base).data()); }

 private:
  const StepPlan& plan_;
  BufferPool& pool_;
  std::vector<std::vector<ValueId>> last_read_;  // by kernel
  std::map<ValueId, Buffer> made_;               // by base
};

}  // namespace assay::engine::cuda
