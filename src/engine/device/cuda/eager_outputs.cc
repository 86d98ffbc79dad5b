// Who reads a value last is the plan's to say: it doesn't change from run to run.
#include "engine/device/cuda/eager_outputs.h"

#include <set>
#include <utility>

namespace assay::engine::cuda {

EagerOutputs::EagerOutputs(const StepPlan& plan, BufferPool& pool)
    : plan_(plan), pool_(pool), last_read_(plan.kernels.size()) {
  std::set<ValueId> kept;
  for (const ValueId output : plan.graph->outputs) kept.insert(plan.bases[output]);
  std::map<ValueId, size_t> last;  // kernels that read or write
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    for (const Binding& binding : plan.kernels[i].bindings) {
      const auto* value = std::get_if<ArenaBinding>(&binding);
      if (value != nullptr && !kept.contains(value->value)) last[value->value] = i;
    }
  }
  for (const auto& [value, kernel] : last) last_read_[kernel].push_back(value);
}

::assay::Status EagerOutputs::make(size_t index, const DimValues& dims) {
  const PlannedKernel& planned = plan_.kernels[index];
  for (size_t b = 0; b < planned.bindings.size(); ++b) {
    const KernelBuffer& buffer = planned.kernel.buffers[b];
    const auto* value = std::get_if<ArenaBinding>(&planned.bindings[b]);
    if (value == nullptr || !buffer.writable) continue;
    const Dim count = elements(plan_.graph->values[value->value].type.shape);
    ASSAY_TRY(made_[value->value], pool_.allocate(static_cast<size_t>(count.value(dims)) *
                                                  dtype_size_bytes(buffer.dtype)));
  }
  return {};
}

void EagerOutputs::release(size_t index) {
  for (const ValueId value : last_read_[index]) made_.erase(value);
}

}  // namespace assay::engine::cuda
