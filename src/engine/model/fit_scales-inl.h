// Scales of the groups of a block, found by trying several, for encode_blocks.cc (compiled once a
// target). A lane holds a group and adds its values up in their order, one rounding an operation:
// the same on every target, however many lanes it has.
#if defined(ASSAY_ENGINE_MODEL_FIT_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_ENGINE_MODEL_FIT_SCALES_INL_H_
#undef ASSAY_ENGINE_MODEL_FIT_SCALES_INL_H_
#else
#define ASSAY_ENGINE_MODEL_FIT_SCALES_INL_H_
#endif

#include <array>
#include <cstddef>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first tries divide a group's range into so many steps more or less than its codes have.
constexpr std::array kTriedSteps = {-0.9f, -0.6f, -0.3f, 0.0f, 0.3f, 0.6f, 0.9f};
// Below it a range is as good as none: fp16 has no such scale.
constexpr float kLeastRange = 0x1p-100f;

// The nearest code, ties to even.
template <class D>
HWY_INLINE hn::Vec<D> nearest(D d, hn::Vec<D> v, float least, float most) {
  return hn::Round(hn::Min(hn::Max(v, hn::Set(d, least)), hn::Set(d, most)));
}

// Value i of each group beside one another.
template <size_t groups, size_t values>
HWY_INLINE void turn(const float* x, float* turned) {
  for (size_t i = 0; i < values; ++i) {
    for (size_t g = 0; g < groups; ++g) turned[i * groups + g] = x[g * values + i];
  }
}

// Calls attempt(inverse, step) for the first tries, with steps of a range of 1.
template <class D, class Attempt>
HWY_INLINE void try_steps(D d, float steps, const Attempt& attempt) {
  for (const float more : kTriedSteps) {
    attempt(hn::Set(d, steps + more), hn::Set(d, 1 / (steps + more)));
  }
}

// A block has eight groups: x = scale * code - minimum, for codes from 0 and minimums from 0.
struct AffineFits {
  static constexpr size_t kGroups = 8, kValues = 32;
  alignas(64) std::array<float, kGroups> scale, minimum;
  alignas(64) std::array<float, kGroups> mean;  // of the values by their weights
};

// A value weighs the root of its group's mean square more than its magnitude. All is computed over
// the group's range from 0 to 1; a try's codes leave residues, which a line through them lessens.
inline void fit_affine(const float* x, int most, AffineFits& fits) {
  constexpr size_t kGroups = AffineFits::kGroups, kValues = AffineFits::kValues;
  const hn::CappedTag<float, kGroups> d;
  using V = hn::Vec<decltype(d)>;
  const auto last = static_cast<float>(most);
  const V zero = hn::Zero(d), one = hn::Set(d, 1), two = hn::Set(d, 2);
  alignas(64) std::array<float, kGroups * kValues> turned;
  alignas(64) std::array<float, kGroups * kValues> weights;
  turn<kGroups, kValues>(x, turned.data());
  for (size_t group = 0; group < kGroups; group += hn::Lanes(d)) {
    float* const values = turned.data() + group;
    float* const weight = weights.data() + group;
    V low = zero, high = hn::Load(d, values), squares = zero;
    for (size_t i = 0; i < kValues; ++i) {
      const V v = hn::Load(d, values + i * kGroups);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
      squares = hn::Add(squares, hn::Mul(v, v));
    }
    const V range = hn::Sub(high, low);
    const V unit = hn::Div(one, hn::Max(range, hn::Set(d, kLeastRange)));
    const V root = hn::Mul(hn::Sqrt(hn::Mul(squares, hn::Set(d, 1.0f / kValues))), unit);
    V w = zero, wx = zero;  // sums of weights, and of values by them
    for (size_t i = 0; i < kValues; ++i) {
      const V v = hn::Load(d, values + i * kGroups);
      const V of_value = hn::Add(root, hn::Abs(hn::Mul(v, unit)));
      const V over_low = hn::Mul(hn::Sub(v, low), unit);
      hn::Store(of_value, d, weight + i * kGroups);
      hn::Store(over_low, d, values + i * kGroups);
      w = hn::Add(w, of_value);
      wx = hn::Add(wx, hn::Mul(of_value, over_low));
    }
    V scale = hn::Set(d, 1 / last), offset = zero;  // the best
    V least = hn::Set(d, std::numeric_limits<float>::max());
    const auto attempt = [&](V inverse, V step, V begin) HWY_ATTR {
      V q1 = zero, q2 = zero, r1 = zero, qr = zero, r2 = zero;  // weighted sums
      for (size_t i = 0; i < kValues; ++i) {
        const V v = hn::Sub(hn::Load(d, values + i * kGroups), begin);
        const V q = nearest(d, hn::Mul(v, inverse), 0, last);
        const V r = hn::Sub(v, hn::Mul(q, step));
        const V of_value = hn::Load(d, weight + i * kGroups);
        const V wq = hn::Mul(of_value, q), wr = hn::Mul(of_value, r);
        q1 = hn::Add(q1, wq);
        q2 = hn::Add(q2, hn::Mul(wq, q));
        r1 = hn::Add(r1, wr);
        qr = hn::Add(qr, hn::Mul(wr, q));
        r2 = hn::Add(r2, hn::Mul(wr, r));
      }
      const V product = hn::Mul(w, q2);
      const V determinant = hn::Sub(product, hn::Mul(q1, q1));
      const V at_most = hn::Neg(hn::Add(hn::Mul(low, unit), begin));  // a minimum isn't negative
      const V free = hn::Div(hn::Sub(hn::Mul(q2, r1), hn::Mul(q1, qr)), determinant);
      const V b = hn::Min(free, at_most);
      const V a = hn::Div(hn::Sub(qr, hn::Mul(b, q1)), q2);
      // The sum of w (r - a q - b)^2.
      const V of_a = hn::Mul(a, hn::Sub(hn::Mul(a, q2), hn::Mul(two, qr)));
      const V of_b = hn::Mul(
          b, hn::Sub(hn::Add(hn::Mul(b, w), hn::Mul(two, hn::Mul(a, q1))), hn::Mul(two, r1)));
      const V error = hn::Add(r2, hn::Add(of_a, of_b));
      // Codes that are all but equal give no line: it would be one of rounding errors.
      const auto has_line = hn::Gt(determinant, hn::Mul(product, hn::Set(d, 1e-5f)));
      const auto better =
          hn::And(hn::And(has_line, hn::Gt(hn::Add(step, a), zero)), hn::Lt(error, least));
      least = hn::IfThenElse(better, error, least);
      scale = hn::IfThenElse(better, hn::Add(step, a), scale);
      offset = hn::IfThenElse(better, hn::Add(begin, b), offset);
    };
    try_steps(d, last, [&](V inverse, V step) HWY_ATTR { attempt(inverse, step, zero); });
    attempt(hn::Div(one, scale), scale, offset);  // the best one's line has better codes
    hn::Store(hn::Mul(scale, range), d, fits.scale.data() + group);
    hn::Store(hn::Neg(hn::Add(low, hn::Mul(offset, range))), d, fits.minimum.data() + group);
    const V mean = hn::Div(wx, hn::Max(w, hn::Set(d, kLeastRange)));
    hn::Store(hn::Add(low, hn::Mul(mean, range)), d, fits.mean.data() + group);
  }
}

// A block has sixteen groups: x = scale * code, for codes from -32 to 31.
struct SymmetricFits {
  static constexpr size_t kGroups = 16, kValues = 16;
  alignas(64) std::array<float, kGroups> scale;
};

// A value weighs as its square. The largest one is -1 in what is computed.
inline void fit_symmetric(const float* x, SymmetricFits& fits) {
  constexpr size_t kGroups = SymmetricFits::kGroups, kValues = SymmetricFits::kValues;
  const hn::CappedTag<float, kGroups> d;
  using V = hn::Vec<decltype(d)>;
  const V zero = hn::Zero(d), one = hn::Set(d, 1);
  alignas(64) std::array<float, kGroups * kValues> turned;
  turn<kGroups, kValues>(x, turned.data());
  for (size_t group = 0; group < kGroups; group += hn::Lanes(d)) {
    float* const values = turned.data() + group;
    V low = zero, high = zero;
    for (size_t i = 0; i < kValues; ++i) {
      low = hn::Min(low, hn::Load(d, values + i * kGroups));
      high = hn::Max(high, hn::Load(d, values + i * kGroups));
    }
    const V range = hn::Max(high, hn::Neg(low));
    const V largest = hn::IfThenElse(hn::Lt(high, range), low, high);
    const V has_range = hn::IfThenElseZero(hn::Gt(range, hn::Set(d, kLeastRange)), one);
    const V unit =
        hn::Div(hn::Neg(has_range), hn::IfThenElse(hn::Gt(has_range, zero), largest, one));
    for (size_t i = 0; i < kValues; ++i) {
      hn::Store(hn::Mul(hn::Load(d, values + i * kGroups), unit), d, values + i * kGroups);
    }
    V scale = hn::Set(d, 1.0f / 32), least = hn::Set(d, std::numeric_limits<float>::max());
    const auto attempt = [&](V inverse, V step) HWY_ATTR {
      V q2 = zero, qr = zero, r2 = zero;  // weighted sums
      for (size_t i = 0; i < kValues; ++i) {
        const V v = hn::Load(d, values + i * kGroups);
        const V q = nearest(d, hn::Mul(v, inverse), -32, 31);
        const V r = hn::Sub(v, hn::Mul(q, step));
        const V vq = hn::Mul(v, q), vr = hn::Mul(v, r);
        q2 = hn::Add(q2, hn::Mul(vq, vq));
        qr = hn::Add(qr, hn::Mul(vq, vr));
        r2 = hn::Add(r2, hn::Mul(vr, vr));
      }
      const V a = hn::Div(qr, q2);
      const V error = hn::Sub(r2, hn::Mul(a, qr));
      const auto better = hn::And(hn::Gt(q2, zero), hn::Lt(error, least));
      least = hn::IfThenElse(better, error, least);
      scale = hn::IfThenElse(better, hn::Add(step, a), scale);
    };
    try_steps(d, 32, attempt);
    attempt(hn::Div(one, scale), scale);  // the best one has better codes
    hn::Store(hn::Neg(hn::Mul(scale, largest)), d, fits.scale.data() + group);
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
