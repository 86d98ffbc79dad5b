// The instruction set that the CPU kernels run with on this machine.
#include "engine/device/cpu/simd_target.h"

#include <hwy/targets.h>

namespace assay::engine {

std::string simd_target_name() {
  // Better targets have lower bits.
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);
}

}  // namespace assay::engine
