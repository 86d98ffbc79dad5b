// Whether a torch arm can be what its name claims, by what its interpreter has.
#pragma once

#include "backend/backend.h"
#include "backend/torch/torch_probe.h"

namespace assay {

// The oldest Triton that Inductor's kernels of a GPU arm are accepted from.
inline constexpr int kLeastTritonMajor = 3;

// Pure. Impossible: PyTorch or transformers can't be imported, a GPU is asked for and there is
// none. Fallback: the mode asks for Inductor and its code generator is missing (Triton on a GPU, a
// C++ compiler on the processor): eager; CUDA graphs on the processor: the same mode without them.
ArmGate judge_torch_arm(const StudyArm& arm, const TorchProbe& probe);

// The gate of an arm whose interpreter wasn't found or can't be asked.
ArmGate impossible_gate(std::string error_class, std::string reason, std::string fix);

}  // namespace assay
