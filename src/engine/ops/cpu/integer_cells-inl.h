// A register's dword lane holds four inputs of one output, so two instructions (VNNI) multiply and
// sum them for 16 outputs: with the upper and with the lower bytes of four values of x, a broadcast
// dword each. Without VNNI such a dword is two values of x, for a product of pairs. Weights are
// unsigned, as the instruction wants, and the format's zero is subtracted from where the sum
// begins.

#if defined(ASSAY_ENGINE_OPS_CPU_INTEGER_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_ENGINE_OPS_CPU_INTEGER_CELLS_INL_H_
#undef ASSAY_ENGINE_OPS_CPU_INTEGER_CELLS_INL_H_
#else
#define ASSAY_ENGINE_OPS_CPU_INTEGER_CELLS_INL_H_
#endif

#include <array>
#include <utility>

#include "engine/ops/cpu/quantized_product.h"
#include "engine/ops/cpu/quantized_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums of each lane's values times the integers of x: an output's, from `start` on.
class Dots {
 public:
  HWY_INLINE explicit Dots(int32_t start) : low_(hn::Set(Ints(), start)), high_(hn::Zero(Ints())) {}

  // Four unsigned bytes a lane, and the two words of four integers (put_words()).
  HWY_INLINE void add(VWords w, const int32_t* words) {
#if HWY_TARGET == HWY_AVX3_DL
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(high_.raw) : "v"(w.raw), "m"(words[0]));
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(low_.raw) : "v"(w.raw), "m"(words[1]));
#else
    const VInts first = hn::Set(Ints(), words[0]), second = hn::Set(Ints(), words[1]);
    add_pairs(hn::And(w, in_each(0x00ff00ff)), first);
    add_pairs(hn::And(hn::ShiftRight<8>(w), in_each(0x00ff00ff)), second);
#endif
  }

  HWY_INLINE VInts sum() const {
#if HWY_TARGET == HWY_AVX3_DL
    return hn::Add(hn::ShiftLeft<8>(high_), low_);
#else
    return low_;
#endif
  }

 private:
  // Products of 16 bits with 16 bits, two a lane.
  HWY_INLINE void add_pairs(VWords w, VInts x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    low_ = hn::Add(low_, VInts{_mm512_madd_epi16(w.raw, x.raw)});
#elif HWY_TARGET == HWY_AVX2
    low_ = hn::Add(low_, VInts{_mm256_madd_epi16(w.raw, x.raw)});
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
    low_ = hn::Add(low_, VInts{_mm_madd_epi16(w.raw, x.raw)});
#else
    const Ints d;
    const auto first = hn::BitCast(d, hn::And(w, in_each(0xffff)));
    const auto second = hn::BitCast(d, hn::ShiftRight<16>(w));
    low_ = hn::Add(low_, hn::Mul(first, hn::ShiftRight<16>(hn::ShiftLeft<16>(x))));
    low_ = hn::Add(low_, hn::Mul(second, hn::ShiftRight<16>(x)));
#endif
  }

  VInts low_, high_;
};

// A block's integers as Dots multiplies them, two words for each four: their upper bytes and their
// lower ones, 256 times the first and the second, both with signs, being the integer; without VNNI
// integers 0 and 2, then 1 and 3.
HWY_INLINE void put_words(const int32_t* integers, int32_t* words) {
#if HWY_TARGET == HWY_AVX3_DL
  const hn::CappedTag<int32_t, 16> d;
  const hn::CappedTag<int8_t, 16> bytes;
  const hn::CappedTag<int32_t, 4> four;
  for (int64_t i = 0; i < cpu::QuantizedBlock::kValues; i += 16) {
    const auto all = hn::LoadU(d, integers + i);
    const auto low = hn::ShiftRight<24>(hn::ShiftLeft<24>(all));
    const auto high = hn::ShiftRight<8>(hn::Sub(all, low));
    const auto highs = hn::BitCast(four, hn::DemoteTo(bytes, high));
    const auto lows = hn::BitCast(four, hn::DemoteTo(bytes, low));
    hn::StoreU(hn::InterleaveLower(four, highs, lows), four, words + i / 2);
    hn::StoreU(hn::InterleaveUpper(four, highs, lows), four, words + i / 2 + 4);
  }
#else
  for (int64_t i = 0; i < cpu::QuantizedBlock::kValues; i += 4) {
    words[i / 2] = (integers[i] & 0xffff) | integers[i + 2] * 0x10000;
    words[i / 2 + 1] = (integers[i + 1] & 0xffff) | integers[i + 3] * 0x10000;
  }
#endif
}

// The values of kUnevenSteps plus 128 that codes stand for, a byte each.
HWY_INLINE VWords uneven_values(VWords codes) {
  alignas(16) static constexpr auto kValues = [] {
    std::array<uint8_t, 16> values = {};
    for (size_t i = 0; i < 16; ++i) values[i] = static_cast<uint8_t>(kUnevenSteps[i] + 128);
    return values;
  }();
#if HWY_TARGET == HWY_SCALAR
  const uint32_t four = hn::GetLane(codes);
  uint32_t values = 0;
  for (int i = 0; i < 32; i += 8) values |= uint32_t{kValues[four >> i & 15]} << i;
  return in_each(values);
#else
  const hn::Repartition<uint8_t, Words> bytes;
  const auto table = hn::LoadDup128(bytes, kValues.data());
  return hn::BitCast(Words(), hn::TableLookupBytes(table, hn::BitCast(bytes, codes)));
#endif
}

// Vector v of a cell: values as they are stored, four of each output from that of `cell` on.
template <WeightFormat format, int v>
HWY_INLINE VWords values_of(const uint8_t* cell) {
  constexpr int64_t kVector = cpu::PackedBlock::kVectorBytes;
  constexpr int bits = kPacked<format>.bits;
  if constexpr (bits == 8) {
    return load_words(cell + v * kVector);
  } else {
    const uint8_t* const highs = cell + kPacked<format>.low_bytes();
    const auto both = load_words(cell + v / 2 * kVector);
    const auto low = hn::And(shifted<v % 2 * 4>(both), in_each(0x0f0f0f0f));
    if constexpr (bits == 5) {
      const auto high = shifted<v - 4>(load_words(highs));
      return hn::Or(low, hn::And(high, in_each(0x10101010)));
    }
    if constexpr (bits == 6) {
      const auto high = shifted<v % 4 * 2 - 4>(load_words(highs + v / 4 * kVector));
      return hn::Or(low, hn::And(high, in_each(0x30303030)));
    }
    if constexpr (kPacked<format>.is_uneven) return uneven_values(low);
    return low;
  }
}

// totals[r] += the products of one cell with a block of row r of x.
template <WeightFormat format, int64_t rows>
HWY_INLINE void add_integer_cell(const uint8_t* cell, const Scales<format>& scales,
                                 const cpu::QuantizedBlock* x, int64_t x_pitch, VFloats* totals) {
  constexpr int kHalves = Scales<format>::kHalves, kEach = 8 / kHalves;
  const Floats f;
  const auto add_half = [&](auto half) ASSAY_CELL_ATTR {
    const auto start = [&](int64_t r) ASSAY_CELL_ATTR {
      const auto& halves = x[r * x_pitch].half_sums;
      return -kPacked<format>.zero * (kHalves == 2 ? halves[half()] : halves[0] + halves[1]);
    };
    [&]<int64_t... r>(std::integer_sequence<int64_t, r...>) ASSAY_CELL_ATTR {
      Dots dots[] = {Dots(start(r))...};
      for_each<half() * kEach, (half() + 1) * kEach>([&](auto v) ASSAY_CELL_ATTR {
        const VWords values = values_of<format, v()>(cell);
        (dots[r].add(values, x[r * x_pitch].words.data() + 2 * v()), ...);
      });
      ((totals[r] = hn::MulAdd(hn::Mul(hn::ConvertTo(f, dots[r].sum()), scales.scale(half())),
                               hn::Set(f, x[r * x_pitch].scale), totals[r])),
       ...);
    }
    (std::make_integer_sequence<int64_t, rows>());
  };
  if constexpr (kHalves == 1) {
    add_half(std::integral_constant<int, 0>());
  } else {  // in a lambda that is inlined late: early, Q6_K takes a tenth longer
    for_each<0, kHalves>([&](auto half) HWY_ATTR { add_half(half); });
  }
  if constexpr (kPacked<format>.has_offset()) {
    for_each<0, rows>([&](auto r) ASSAY_CELL_ATTR {
      totals[r()] = hn::NegMulAdd(scales.less(), hn::Set(f, x[r() * x_pitch].sum), totals[r()]);
    });
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's turn
