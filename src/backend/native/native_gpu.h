// A GPU's fitness for native arms, as far as it shows without a context on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "backend/backend.h"

namespace assay {

// One for each run: every GPU is asked once.
class NativeGpus {
 public:
  // Impossible where the driver, the GPU or NVRTC is missing: class no_cuda or no_nvrtc.
  const ArmReadiness& readiness(int gpu);
  // Likewise for products in fp8: class no_fp8 where the GPU isn't of the kind, or cuBLASLt is
  // missing.
  ArmReadiness fp8_readiness(int gpu);
  // Makes a context for as long as it takes to measure: about a second and a gigabyte of the GPU's
  // memory. Absent: weights of this size fit its cache, or it couldn't be measured.
  std::optional<ReadLimit> read_limit(int gpu, uint64_t weight_bytes);
  // Operations a second in products of that type; absent as for Backend.
  std::optional<double> matrix_limit(int gpu, const std::string& dtype);

 private:
  std::map<int, ArmReadiness> readiness_;  // by the driver's number
};

}  // namespace assay
