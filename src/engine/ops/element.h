// One element of a weight tensor as fp32, for reference code and the odd ends of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/model/convert.h"
#include "engine/tensor.h"

namespace assay::engine {

// Element `i` of the bytes of a tensor of fp32, fp16 or bf16, which may lie at any address.
inline float load_element(const std::byte* data, DType dtype, int64_t i) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, data + i * 4, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, sizeof bits);
  return dtype == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

}  // namespace assay::engine
