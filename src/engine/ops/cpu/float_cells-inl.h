// Products of cells whose values are e4m3: these become fp32 by a shift and a mask, and each is
// multiplied with an integer of x as fp32 has it.

#if defined(ASSAY_ENGINE_OPS_CPU_FLOAT_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_ENGINE_OPS_CPU_FLOAT_CELLS_INL_H_
#undef ASSAY_ENGINE_OPS_CPU_FLOAT_CELLS_INL_H_
#else
#define ASSAY_ENGINE_OPS_CPU_FLOAT_CELLS_INL_H_
#endif

#include "engine/ops/cpu/quantized_product.h"
#include "engine/ops/cpu/quantized_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The integers that put_words() put.
HWY_INLINE void put_integers(const int32_t* words, float* integers) {
  for (int64_t i = 0; i < cpu::QuantizedBlock::kValues; i += 4) {
#if HWY_TARGET == HWY_AVX3_DL
    const hn::CappedTag<int32_t, 4> d;
    const hn::CappedTag<float, 4> f;
    const hn::CappedTag<int8_t, 4> bytes;
    const auto* four = reinterpret_cast<const int8_t*>(words + i / 2);
    const auto high = hn::PromoteTo(d, hn::LoadU(bytes, four));
    const auto low = hn::PromoteTo(d, hn::LoadU(bytes, four + 4));
    hn::StoreU(hn::ConvertTo(f, hn::Add(hn::ShiftLeft<8>(high), low)), f, integers + i);
#else
    for (int64_t k = 0; k < 4; ++k) {
      const int32_t word = words[i / 2 + k % 2];
      integers[i + k] = static_cast<float>(k < 2 ? static_cast<int16_t>(word) : word >> 16);
    }
#endif
  }
}

// An e4m3 as fp32, without its factor 2^120, by moving its bits: `shift` brings its byte to the
// top. Its least values are subnormal so, which is exact, and where it is slow they are rare: a
// weight of a ten-thousandth of its row's largest.
template <int shift>
HWY_INLINE VFloats small_float(VWords words) {
  const auto top = hn::BitCast(Ints(), shifted<-shift>(words));
  return hn::BitCast(Floats(),
                     hn::And(hn::BitCast(Words(), hn::ShiftRight<4>(top)), in_each(0x87f00000)));
}
inline constexpr float kSmallFloat = 0x1p120f;

// add_integer_cell() for values that are floats, with the integers of x as floats, those of a row
// `x_pitch` cells behind another's: the sums are fp32's.
template <WeightFormat format, int64_t rows>
HWY_INLINE void add_float_cell(const uint8_t* cell, const Scales<format>& scales,
                               const cpu::QuantizedBlock* x, int64_t x_pitch, const float* integers,
                               VFloats* totals) {
  const Floats f;
  VFloats dots[rows];
  for_each<0, rows>([&](auto r) ASSAY_CELL_ATTR { dots[r()] = hn::Zero(f); });
  for_each<0, cpu::PackedBlock::kVectors>([&](auto v) ASSAY_CELL_ATTR {
    const VWords words = load_words(cell + v() * cpu::PackedBlock::kVectorBytes);
    for_each<0, 4>([&](auto k) ASSAY_CELL_ATTR {
      const VFloats value = small_float<24 - 8 * k()>(words);
      for_each<0, rows>([&](auto r) ASSAY_CELL_ATTR {
        const auto number = hn::Set(f, integers[r() * x_pitch * 32 + 4 * v() + k()]);
        dots[r()] = hn::MulAdd(value, number, dots[r()]);
      });
    });
  });
  for_each<0, rows>([&](auto r) ASSAY_CELL_ATTR {
    const auto scaled = hn::Mul(hn::Mul(dots[r()], hn::Set(f, kSmallFloat)), scales.scale(0));
    totals[r()] = hn::MulAdd(scaled, hn::Set(f, x[r() * x_pitch].scale), totals[r()]);
  });
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's turn
