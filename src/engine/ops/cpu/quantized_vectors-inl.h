// Registers of packed blocks (quantized_layout.h): loads, and the scales of their cells, for each
// target of Highway.

#if defined(ASSAY_ENGINE_OPS_CPU_QUANTIZED_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_ENGINE_OPS_CPU_QUANTIZED_VECTORS_INL_H_
#undef ASSAY_ENGINE_OPS_CPU_QUANTIZED_VECTORS_INL_H_
#else
#define ASSAY_ENGINE_OPS_CPU_QUANTIZED_VECTORS_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/ops/cpu/quantized_layout.h"
#include "hwy/highway.h"

// For lambdas that see registers of a cell: where a compiler inlines them late, arrays of registers
// stay in memory, and each cell stores and loads them (docs/engine-figures.md, "Weights in
// blocks").
#undef ASSAY_CELL_ATTR
#define ASSAY_CELL_ATTR HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <WeightFormat format>
inline constexpr cpu::PackedBlock kPacked = cpu::packed_block(format);

using Words = hn::CappedTag<uint32_t, 16>;
using Ints = hn::CappedTag<int32_t, 16>;
using Floats = hn::CappedTag<float, 16>;
using VWords = hn::Vec<Words>;
using VInts = hn::Vec<Ints>;
using VFloats = hn::Vec<Floats>;

// Loads and stores of any address.
HWY_INLINE VWords load_words(const uint8_t* at) {
  return hn::LoadU(Words(), reinterpret_cast<const uint32_t*>(at));
}
HWY_INLINE VWords in_each(uint32_t word) {
  return hn::Set(Words(), word);
}

// visit(std::integral_constant<int, v>()) for v in [begin, end).
template <int begin, int end, typename Visit>
HWY_INLINE void for_each(const Visit& visit) {
  if constexpr (begin < end) {
    visit(std::integral_constant<int, begin>());
    for_each<begin + 1, end>(visit);
  }
}

template <int shift>  // to the right, or if negative to the left
HWY_INLINE VWords shifted(VWords v) {
  if constexpr (shift > 0) return hn::ShiftRight<shift>(v);
  if constexpr (shift < 0) return hn::ShiftLeft<-shift>(v);
  return v;
}

// As fp32, and each NaN as the usual one, whose upper half stays a NaN when it is rounded. Without
// an instruction Highway makes numbers of what is none, so infinity becomes a NaN too.
HWY_INLINE VFloats load_halves(const uint8_t* at) {
  const Floats f;
  const hn::Rebind<hwy::float16_t, Floats> half;
  const auto wide = hn::PromoteTo(f, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(at)));
  const auto nan = hn::Set(f, std::numeric_limits<float>::quiet_NaN());
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SCALAR
  const hn::Rebind<uint16_t, Floats> bits;
  const auto words = hn::PromoteTo(Ints(), hn::LoadU(bits, reinterpret_cast<const uint16_t*>(at)));
  const auto exponent = hn::Set(Ints(), 0x7c00);
  return hn::IfThenElse(hn::RebindMask(f, hn::Eq(hn::And(words, exponent), exponent)), nan, wide);
#else
  return hn::IfThenElse(hn::IsNaN(wide), nan, wide);
#endif
}

// Scales of the cells of a packed block, in their order, for the outputs from `first` of the 16 on:
// a value is scale * (stored - zero) - minimum. In formats with two scales a cell, they are of its
// halves.
template <WeightFormat format>
class Scales {
 public:
  static constexpr int kHalves = format == WeightFormat::kQ6_K ? 2 : 1;

  HWY_INLINE Scales(const uint8_t* block, int64_t first) : d_(hn::Zero(Floats())) {
    if constexpr (kPacked<format>.has_word()) {
      word(block + 4 * first);
      return;
    }
    d_ = load_halves(block + 2 * first);
    if constexpr (kPacked<format>.has_minimum) {
      minimum_ = load_halves(block + kPacked<format>.minimum_at() + 2 * first);
    }
    words_ = block + kPacked<format>.scales_at() + 4 * first;
  }

  // To cell c; all cells are visited in order.
  HWY_INLINE void to_cell(int64_t c) {
    const Floats f;
    const Ints d;
    constexpr int64_t kWords = cpu::PackedBlock::kVectorBytes;
    if constexpr (kPacked<format>.has_word()) {
      static_cast<void>(c);  // one for all cells
    } else if constexpr (kPacked<format>.cells == 1) {
      scale_[0] = d_;
      if constexpr (kPacked<format>.has_minimum) less_ = hn::Neg(minimum_);
    } else if constexpr (kHalves == 2) {
      if (c % 2 == 0) scales_ = load_words(words_ + c / 2 * kWords);
      for (auto& scale : scale_) {
        const auto last = hn::BitCast(d, hn::ShiftLeft<24>(scales_));
        scale = hn::Mul(d_, hn::ConvertTo(f, hn::ShiftRight<24>(last)));
        scales_ = hn::ShiftRight<8>(scales_);
      }
    } else {
      if (c == 0) {
        scales_ = hn::And(load_words(words_), in_each(0x3f3f3f3f));
        minima_ = hn::And(load_words(words_ + kWords), in_each(0x3f3f3f3f));
      } else if (c == 4) {
        const auto s0 = load_words(words_), s1 = load_words(words_ + kWords);
        const auto s2 = load_words(words_ + 2 * kWords);
        const auto four = in_each(0x0f0f0f0f), upper = in_each(0x30303030);
        scales_ = hn::Or(hn::And(s2, four), hn::And(hn::ShiftRight<2>(s0), upper));
        minima_ =
            hn::Or(hn::And(hn::ShiftRight<4>(s2), four), hn::And(hn::ShiftRight<2>(s1), upper));
      }
      const auto first = [&](VWords bytes) ASSAY_CELL_ATTR {
        return hn::ConvertTo(f, hn::BitCast(d, hn::And(bytes, in_each(0xff))));
      };
      scale_[0] = hn::Mul(d_, first(scales_));
      less_ = hn::Mul(minimum_, first(minima_));
      scales_ = hn::ShiftRight<8>(scales_);
      minima_ = hn::ShiftRight<8>(minima_);
    }
  }

  HWY_INLINE VFloats scale(int half) const { return scale_[half]; }
  // Subtracted from each value; only in formats that have one.
  HWY_INLINE VFloats less() const { return less_; }

 private:
  HWY_INLINE void word(const uint8_t* at) {
    const Floats f;
    const auto words = load_words(at);
    scale_[0] = hn::BitCast(f, words);
    if constexpr (kPacked<format>.has_offset()) {
      const auto zero = hn::BitCast(Ints(), hn::And(words, in_each(0xff)));
      scale_[0] = hn::BitCast(f, hn::And(words, in_each(0xffffff00)));
      less_ = hn::Mul(scale_[0], hn::ConvertTo(f, zero));
    }
  }

  const uint8_t* words_;
  VFloats d_, minimum_ = hn::Zero(Floats()), less_ = hn::Zero(Floats());
  VFloats scale_[kHalves];
  VWords scales_ = hn::Zero(Words()), minima_ = hn::Zero(Words());
};

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's turn
