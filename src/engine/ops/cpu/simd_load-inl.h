// Loads of fp32, bf16 and fp16 elements as fp32 vectors, for the kernels' files (compiled once a
// target).
#if defined(ASSAY_ENGINE_OPS_CPU_SIMD_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_ENGINE_OPS_CPU_SIMD_LOAD_INL_H_
#undef ASSAY_ENGINE_OPS_CPU_SIMD_LOAD_INL_H_
#else
#define ASSAY_ENGINE_OPS_CPU_SIMD_LOAD_INL_H_
#endif

#include <bit>

#include "engine/ops/element.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_f32(D d, const float* p) {
  return hn::LoadU(d, p);
}

template <class D, class Half>
HWY_INLINE hn::Vec<D> load_f32(D d, const Half* p) {
  const hn::Rebind<Half, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, p));
}

HWY_INLINE float scalar_f32(float value) {
  return value;
}
HWY_INLINE float scalar_f32(hwy::bfloat16_t value) {
  return hwy::F32FromBF16(value);
}
HWY_INLINE float scalar_f32(hwy::float16_t value) {
  return f16_to_f32(std::bit_cast<uint16_t>(value));
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
