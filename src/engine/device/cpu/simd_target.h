// The instruction set that the CPU kernels run with on this machine.
#pragma once

#include <optional>
#include <string>

namespace assay::engine {

// Highway's name of the best target that this processor has and this build contains: "AVX3",
// "AVX2", "NEON", ...; every kernel is dispatched to it at run time.
std::string simd_target_name();

// The instructions that multiply prompts with weights of bf16 here: "AMX", "AVX512_BF16", or none
// but those of simd_target_name().
std::optional<std::string> bf16_target_name();

}  // namespace assay::engine
