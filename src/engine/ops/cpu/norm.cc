// Row statistics: short sums in fp32 lanes, added up in double.
#include "engine/ops/cpu/norm.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/norm.cc"
#include "hwy/foreach_target.h"  // must come first

#include "engine/ops/cpu/simd_load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {

constexpr int64_t kSumBlock = 256;  // a multiple of every target's lanes

// Sum of (x - shift)^2 if `squared`, else of x - shift.
template <bool squared>
HWY_INLINE double sum_row(const float* x, int64_t width, float shift) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shifts = hn::Set(d, shift);
  double total = 0;
  int64_t i = 0;
  while (i + lanes <= width) {
    const int64_t end = std::min(width, i + kSumBlock);
    auto sum = hn::Zero(d);
    for (; i + lanes <= end; i += lanes) {
      const auto v = hn::Sub(hn::LoadU(d, x + i), shifts);
      sum = squared ? hn::MulAdd(v, v, sum) : hn::Add(sum, v);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  for (; i < width; ++i) {
    const float v = x[i] - shift;
    total += squared ? double{v} * v : double{v};
  }
  return total;
}

// out = (x - shift) * scale * weight + bias; a null bias adds nothing.
template <class W, class B>
HWY_INLINE void scale_row(const float* x, float shift, float scale, const W* weight, const B* bias,
                          float* out, int64_t width) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shifts = hn::Set(d, shift);
  const auto scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    const auto v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), shifts), scales);
    const auto w = load_f32(d, weight + i);
    const auto b = bias != nullptr ? load_f32(d, bias + i) : hn::Zero(d);
    hn::StoreU(hn::MulAdd(v, w, b), d, out + i);
  }
  for (; i < width; ++i) {
    const float b = bias != nullptr ? scalar_f32(bias[i]) : 0.0f;
    out[i] = (x[i] - shift) * scale * scalar_f32(weight[i]) + b;
  }
}

template <class W, class B>
void norm_rows(const float* x, const W* weight, const B* bias, bool centre, double eps, float* out,
               int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, x += width, out += width) {
    const auto n = static_cast<double>(width);
    const float mean = centre ? static_cast<float>(sum_row<false>(x, width, 0) / n) : 0.0f;
    const double variance = sum_row<true>(x, width, mean) / n;
    scale_row(x, mean, static_cast<float>(1 / std::sqrt(variance + eps)), weight, bias, out, width);
  }
}

template <class W>
void norm_with(const float* x, const W* weight, const TensorView* bias, double eps, float* out,
               int64_t rows, int64_t width) {
  const bool centre = bias != nullptr;
  const std::byte* b = centre ? bias->data : nullptr;
  switch (centre ? bias->element() : DType::kF32) {
    case DType::kBF16:
      return norm_rows(x, weight, reinterpret_cast<const hwy::bfloat16_t*>(b), centre, eps, out,
                       rows, width);
    case DType::kF16:
      return norm_rows(x, weight, reinterpret_cast<const hwy::float16_t*>(b), centre, eps, out,
                       rows, width);
    case DType::kF32:
      return norm_rows(x, weight, reinterpret_cast<const float*>(b), centre, eps, out, rows, width);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

// With a bias it is the layer norm, without one the RMS norm.
void norm(const float* x, const TensorView& weight, const TensorView* bias, double eps, float* out,
          int64_t rows, int64_t width) {
  assert(!weight.in_blocks() && (bias == nullptr || !bias->in_blocks()));
  const std::byte* w = weight.data;
  switch (weight.element()) {
    case DType::kBF16:
      return norm_with(x, reinterpret_cast<const hwy::bfloat16_t*>(w), bias, eps, out, rows, width);
    case DType::kF16:
      return norm_with(x, reinterpret_cast<const hwy::float16_t*>(w), bias, eps, out, rows, width);
    case DType::kF32:
      return norm_with(x, reinterpret_cast<const float*>(w), bias, eps, out, rows, width);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(norm);

namespace cpu {

void layer_norm(const float* x, const TensorView& weight, const TensorView& bias, double eps,
                float* out, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(norm)(x, weight, &bias, eps, out, rows, width);
}

void rms_norm(const float* x, const TensorView& weight, double eps, float* out, int64_t rows,
              int64_t width) {
  HWY_DYNAMIC_DISPATCH(norm)(x, weight, nullptr, eps, out, rows, width);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
