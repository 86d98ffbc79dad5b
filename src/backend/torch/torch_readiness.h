// Judges by its interpreter's packages if a torch arm can be what its name claims.
#pragma once

#include <compare>

#include "backend/backend.h"
#include "backend/torch/torch_probe.h"

namespace assay {

// The beginning of a version such as "2.11.0+cu130".
struct ReleaseNumber {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ReleaseNumber&) const = default;
};

// The oldest that the worker's tests have passed with (docs/worker-protocol.md, "Versions").
inline constexpr ReleaseNumber kLeastPython{3, 11};
inline constexpr ReleaseNumber kLeastTorch{2, 5};
inline constexpr ReleaseNumber kLeastTransformers{4, 46};
// The oldest Triton whose kernels Inductor may use for a GPU arm.
inline constexpr ReleaseNumber kLeastTriton{3, 0};

// Pure. Impossible: PyTorch or transformers can't be imported, one of them or Python is too old, a
// GPU is asked for and there is none. Fallback: the mode asks for Inductor and its code generator
// is missing (Triton on a GPU, a C++ compiler on the processor): eager; CUDA graphs on the
// processor: the same mode without them.
ArmReadiness judge_torch_arm(const StudyArm& arm, const TorchProbe& probe);

}  // namespace assay
