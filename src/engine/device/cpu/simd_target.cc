// The instruction set that the CPU kernels run with on this machine.
#include "engine/device/cpu/simd_target.h"

#include <hwy/targets.h>

#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/panel_product.h"

namespace assay::engine {

std::string simd_target_name() {
  // Better targets have lower bits.
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);
}

std::optional<std::string> bf16_target_name() {
  if (cpu::panel_uses_tiles(DType::kBF16)) return "AMX";
  if (cpu::has_bf16_dot()) return "AVX512_BF16";
  return std::nullopt;
}

}  // namespace assay::engine
