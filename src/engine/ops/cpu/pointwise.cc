// Elementwise kernels: whole vectors, then the last few elements one by one through the same code.
#include "engine/ops/cpu/pointwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/pointwise.cc"
#include "hwy/foreach_target.h"  // must come first

#include "engine/ops/cpu/simd_load-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Multiply {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};

// x / (1 + exp(-k)) without overflow; k has the sign of x.
template <class D, class V>
HWY_INLINE V times_sigmoid(D d, V x, V k) {
  const V one = hn::Set(d, 1.0f);
  const V small = hn::Exp(d, hn::Neg(hn::Abs(k)));
  const V numerator = hn::IfThenElse(hn::Lt(k, hn::Zero(d)), small, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, small)));
}

struct Silu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return times_sigmoid(d, x, x);
  }
};

// 0.5 x (1 + tanh(u)) = x sigmoid(2u): no cancellation for negative x.
struct GeluTanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
    return times_sigmoid(d, x, hn::Mul(cubic, hn::Set(d, 1.5957691216057308f)));
  }
};

// x Phi(x) = 0.5 x erfc(-x / sqrt 2). erfc by Chebyshev fit (Numerical Recipes, 2nd ed.,
// section 6.2, erfcc: relative error 1.2e-7), its exponent split so that large squares keep their
// low bits.
struct GeluErf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    // Beyond 20 exp underflows anyway; the bound keeps the square finite.
    const V z = hn::Min(hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752f)), hn::Set(d, 20.0f));
    const V one = hn::Set(d, 1.0f);
    const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.5f), one));
    V poly = hn::Set(d, 0.17087277f);
    for (const float c : {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                          0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f}) {
      poly = hn::MulAdd(poly, t, hn::Set(d, c));
    }
    const V square = hn::Mul(z, z);
    const V low = hn::MulSub(z, z, square);
    const V tail = hn::Mul(hn::Mul(t, hn::Exp(d, hn::Neg(square))), hn::Exp(d, hn::Sub(poly, low)));
    const V half_tail = hn::Mul(tail, hn::Set(d, 0.5f));
    return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), half_tail, hn::Sub(one, half_tail)));
  }
};

struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);  // keeps NaN
  }
};

template <class Op>
HWY_INLINE void map_binary(const float* a, const float* b, float* out, int64_t count, Op op) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(op(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i)
    hn::StoreU(op(one, hn::LoadU(one, a + i), hn::LoadU(one, b + i)), one, out + i);
}

template <class Op>
HWY_INLINE void map_unary(const float* x, float* out, int64_t count, Op op) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(op(d, hn::LoadU(d, x + i)), d, out + i);
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) hn::StoreU(op(one, hn::LoadU(one, x + i)), one, out + i);
}

void add(const float* a, const float* b, float* out, int64_t count) {
  map_binary(a, b, out, count, Add());
}

void multiply(const float* a, const float* b, float* out, int64_t count) {
  map_binary(a, b, out, count, Multiply());
}

void activate(Activation kind, const float* x, float* out, int64_t count) {
  switch (kind) {
    case Activation::kGeluTanh:
      return map_unary(x, out, count, GeluTanh());
    case Activation::kGeluErf:
      return map_unary(x, out, count, GeluErf());
    case Activation::kRelu:
      return map_unary(x, out, count, Relu());
    case Activation::kSilu:
      return map_unary(x, out, count, Silu());
  }
}

template <class Half>
void convert(const Half* source, float* out, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_f32(d, source + i), d, out + i);
  for (; i < count; ++i) out[i] = scalar_f32(source[i]);
}

void convert_to_f32(const std::byte* source, DType dtype, float* out, int64_t count) {
  switch (dtype) {
    case DType::kBF16:
      return convert(reinterpret_cast<const hwy::bfloat16_t*>(source), out, count);
    case DType::kF16:
      return convert(reinterpret_cast<const hwy::float16_t*>(source), out, count);
    case DType::kF32:
      std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kI32:
      assert(false && "not a float type");
  }
}

template <class D>
HWY_INLINE void rotate_pair(D d, const float* x, const float* cos, const float* sin, float* out,
                            int64_t half) {
  const auto low = hn::LoadU(d, x);
  const auto high = hn::LoadU(d, x + half);
  const auto c = hn::LoadU(d, cos);
  const auto s = hn::LoadU(d, sin);
  hn::StoreU(hn::MulSub(low, c, hn::Mul(high, s)), d, out);
  hn::StoreU(hn::MulAdd(high, c, hn::Mul(low, s)), d, out + half);
}

void rotate(const float* x, const float* cos, const float* sin, float* out, int64_t heads,
            int64_t half) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t h = 0; h < heads; ++h, x += 2 * half, out += 2 * half) {
    int64_t i = 0;
    for (; i + lanes <= half; i += lanes) rotate_pair(d, x + i, cos + i, sin + i, out + i, half);
    for (; i < half; ++i) rotate_pair(one, x + i, cos + i, sin + i, out + i, half);
  }
}

// The largest element, or NaN if there is one.
float largest(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto ordered = hn::Eq(best, best);  // lanes that have seen no NaN
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    best = hn::Max(best, v);
    ordered = hn::And(ordered, hn::Eq(v, v));
  }
  bool has_nan = !hn::AllTrue(d, ordered);
  // Lane by lane: Highway's MaxOfLanes begins with the lowest finite number where it emulates
  // vectors.
  float result = -std::numeric_limits<float>::infinity();
  for (size_t lane = 0; lane < hn::Lanes(d); ++lane) {
    result = std::max(result, hn::ExtractLane(best, lane));
  }
  for (; i < count; ++i) {
    has_nan = has_nan || std::isnan(x[i]);
    result = std::max(result, x[i]);
  }
  return has_nan ? std::numeric_limits<float>::quiet_NaN() : result;
}

int64_t argmax(const float* x, int64_t count) {
  const float target = largest(x, count);
  if (std::isnan(target))
    return std::find_if(x, x + count, [](float v) { return std::isnan(v); }) - x;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, target);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted));
    if (lane >= 0) return i + lane;
  }
  return std::find(x + i, x + count, target) - x;
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(add);
HWY_EXPORT(multiply);
HWY_EXPORT(activate);
HWY_EXPORT(convert_to_f32);
HWY_EXPORT(rotate);
HWY_EXPORT(argmax);

namespace cpu {

void add(const float* a, const float* b, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add)(a, b, out, count);
}

void multiply(const float* a, const float* b, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(multiply)(a, b, out, count);
}

void activate(Activation kind, const float* x, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(activate)(kind, x, out, count);
}

void convert_to_f32(const std::byte* source, DType dtype, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(convert_to_f32)(source, dtype, out, count);
}

void rotate(const float* x, const float* cos, const float* sin, float* out, int64_t heads,
            int64_t half) {
  HWY_DYNAMIC_DISPATCH(rotate)(x, cos, sin, out, heads, half);
}

int64_t argmax(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(argmax)(x, count);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
