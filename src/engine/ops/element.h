// One element of a weight tensor as fp32, for reference code and the odd ends of kernels.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/model/convert.h"
#include "engine/tensor.h"

namespace assay::engine {

// Element `i` of the bytes of a tensor of fp32, fp16 or bf16 (assert), which may lie at any
// address.
inline float load_element(const std::byte* data, DType dtype, int64_t i) {
  float value = 0;
  uint16_t bits = 0;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(&value, data + i * 4, sizeof value);
      return value;
    case DType::kF16:
      std::memcpy(&bits, data + i * 2, sizeof bits);
      return f16_to_f32(bits);
    case DType::kBF16:
      std::memcpy(&bits, data + i * 2, sizeof bits);
      return bf16_to_f32(bits);
    case DType::kI32:
      break;
  }
  assert(false && "not a float type");
  return value;
}

}  // namespace assay::engine
