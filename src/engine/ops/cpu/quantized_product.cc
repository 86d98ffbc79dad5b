// A register's dword lane holds four inputs of one output, so two instructions (VNNI) multiply and
// sum them for 16 outputs: with the upper and with the lower bytes of four values of x, a broadcast
// dword each. Without VNNI such a dword is two values of x, for a product of pairs. Weights are
// unsigned, as the instruction wants, and the format's zero is subtracted from where the sum
// begins. The four groups of a tile are four streams of memory (engine/memory/read_ahead.h).
#include "engine/ops/cpu/quantized_product.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "engine/memory/read_ahead.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/ops/cpu/row_groups.h"

#define HWY_WANT_AVX3_DL  // has VNNI, but Highway 1.0 names it to no compiler: hence assembly
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/quantized_product.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kMostRows = 4;  // that share a cell's values in registers
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

// Sums of each lane's values times the integers of x: an output's, from `start` on.
class Dots {
 public:
  HWY_INLINE explicit Dots(int32_t start) : low_(hn::Set(Ints(), start)), high_(hn::Zero(Ints())) {}

  // Four unsigned bytes a lane, and the two words of four integers (put_words()).
  HWY_INLINE void add(VWords w, const int32_t* words) {
    const VInts first = hn::Set(Ints(), words[0]), second = hn::Set(Ints(), words[1]);
#if HWY_TARGET == HWY_AVX3_DL
    asm("vpdpbusd %2, %1, %0" : "+v"(high_.raw) : "v"(w.raw), "v"(first.raw));
    asm("vpdpbusd %2, %1, %0" : "+v"(low_.raw) : "v"(w.raw), "v"(second.raw));
#else
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

// The integers that put_words() put.
HWY_INLINE void put_integers(const int32_t* words, float* integers) {
  for (int64_t i = 0; i < cpu::QuantizedBlock::kValues; i += 4) {
    for (int64_t k = 0; k < 4; ++k) {
#if HWY_TARGET == HWY_AVX3_DL
      const auto high = static_cast<int8_t>(words[i / 2] >> 8 * k);
      const auto low = static_cast<int8_t>(words[i / 2 + 1] >> 8 * k);
      integers[i + k] = static_cast<float>(256 * high + low);
#else
      const int32_t word = words[i / 2 + k % 2];
      integers[i + k] = static_cast<float>(k < 2 ? static_cast<int16_t>(word) : word >> 16);
#endif
    }
  }
}

template <int shift>  // to the right, or if negative to the left
HWY_INLINE VWords shifted(VWords v) {
  if constexpr (shift > 0) return hn::ShiftRight<shift>(v);
  if constexpr (shift < 0) return hn::ShiftLeft<-shift>(v);
  return v;
}

// Vector v of a cell: values as they are stored, four of each output from that of `cell` on.
template <int bits, int v>
HWY_INLINE VWords values_of(const uint8_t* cell) {
  if constexpr (bits == 8) {
    return load_words(cell + v * 64);
  } else {
    const auto both = load_words(cell + v % 4 * 64);
    const auto low = hn::And(shifted < v < 4 ? 0 : 4 > (both), in_each(0x0f0f0f0f));
    if constexpr (bits == 5) {
      const auto high = shifted<v - 4>(load_words(cell + 256));
      return hn::Or(low, hn::And(high, in_each(0x10101010)));
    }
    if constexpr (bits == 6) {
      const auto high = shifted<v % 4 * 2 - 4>(load_words(cell + 256 + v / 4 * 64));
      return hn::Or(low, hn::And(high, in_each(0x30303030)));
    }
    return low;
  }
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
    constexpr int64_t kWords = 4 * cpu::PackedBlock::kOutputs;
    if constexpr (kPacked<format>.has_word()) {
      static_cast<void>(c);  // one for all cells
    } else if constexpr (kPacked<format>.cells == 1) {
      scale_[0] = d_;
      if constexpr (kPacked<format>.has_minimum) offset_ = minimum_;
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
      const auto first = [&](VWords bytes) HWY_ATTR {
        return hn::ConvertTo(f, hn::BitCast(d, hn::And(bytes, in_each(0xff))));
      };
      scale_[0] = hn::Mul(d_, first(scales_));
      offset_ = hn::Neg(hn::Mul(minimum_, first(minima_)));
      scales_ = hn::ShiftRight<8>(scales_);
      minima_ = hn::ShiftRight<8>(minima_);
    }
  }

  HWY_INLINE VFloats scale(int half) const { return scale_[half]; }
  // Added to each value; only in formats that have one.
  HWY_INLINE VFloats offset() const { return offset_; }

 private:
  HWY_INLINE void word(const uint8_t* at) {
    const Floats f;
    const auto words = load_words(at);
    scale_[0] = hn::BitCast(f, words);
    if constexpr (kPacked<format>.has_offset()) {
      const auto zero = hn::BitCast(Ints(), hn::And(words, in_each(0xff)));
      scale_[0] = hn::BitCast(f, hn::And(words, in_each(0xffffff00)));
      offset_ = hn::Neg(hn::Mul(scale_[0], hn::ConvertTo(f, zero)));
    }
  }

  const uint8_t* words_;
  VFloats d_, minimum_ = hn::Zero(Floats()), offset_ = hn::Zero(Floats());
  VFloats scale_[kHalves];
  VWords scales_ = hn::Zero(Words()), minima_ = hn::Zero(Words());
};

// visit(std::integral_constant<int, v>()) for v in [begin, end).
template <int begin, int end, typename Visit>
HWY_INLINE void for_vectors(const Visit& visit) {
  if constexpr (begin < end) {
    visit(std::integral_constant<int, begin>());
    for_vectors<begin + 1, end>(visit);
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

// add_cell() for values that are floats, with the integers of x as floats, [rows, 32]: the sums are
// fp32's.
template <WeightFormat format, int64_t rows>
HWY_INLINE void add_float_cell(const uint8_t* cell, const Scales<format>& scales,
                               const cpu::QuantizedBlock* x, int64_t x_pitch, const float* integers,
                               float* sums, int64_t pitch) {
  const Floats f;
  VFloats dots[rows];
  for (int64_t r = 0; r < rows; ++r) dots[r] = hn::Zero(f);
  for_vectors<0, cpu::PackedBlock::kVectors>([&](auto v) HWY_ATTR {
    const VWords words = load_words(cell + v() * 64);
    for_vectors<0, 4>([&](auto k) HWY_ATTR {
      const VFloats value = small_float<24 - 8 * k()>(words);
      for (int64_t r = 0; r < rows; ++r) {
        dots[r] = hn::MulAdd(value, hn::Set(f, integers[r * 32 + 4 * v() + k()]), dots[r]);
      }
    });
  });
  for (int64_t r = 0; r < rows; ++r) {
    const auto scaled = hn::Mul(hn::Mul(dots[r], hn::Set(f, kSmallFloat)), scales.scale(0));
    const auto total = hn::LoadU(f, sums + r * pitch);
    hn::StoreU(hn::MulAdd(scaled, hn::Set(f, x[r * x_pitch].scale), total), f, sums + r * pitch);
  }
}

// sums[r, lane] += the products of one cell with a block of each row of x.
template <WeightFormat format, int64_t rows>
HWY_INLINE void add_cell(const uint8_t* cell, const Scales<format>& scales,
                         const cpu::QuantizedBlock* x, int64_t x_pitch, float* sums,
                         int64_t pitch) {
  constexpr int kHalves = Scales<format>::kHalves, kEach = 8 / kHalves;
  const Floats f;
  VFloats totals[rows];
  for (int64_t r = 0; r < rows; ++r) totals[r] = hn::LoadU(f, sums + r * pitch);
  for_vectors<0, kHalves>([&](auto half) HWY_ATTR {
    std::array<int32_t, rows> starts;
    for (int64_t r = 0; r < rows; ++r) {
      const auto& halves = x[r * x_pitch].half_sums;
      const int32_t sum = kHalves == 2 ? halves[half()] : halves[0] + halves[1];
      starts[r] = -kPacked<format>.zero * sum;
    }
    [&]<int64_t... r>(std::integer_sequence<int64_t, r...>) HWY_ATTR {
      Dots dots[] = {Dots(starts[r])...};
      for_vectors<half() * kEach, (half() + 1) * kEach>([&](auto v) HWY_ATTR {
        const VWords values = values_of<kPacked<format>.bits, v()>(cell);
        (dots[r].add(values, x[r * x_pitch].words.data() + 2 * v()), ...);
      });
      ((totals[r] = hn::MulAdd(hn::Mul(hn::ConvertTo(f, dots[r].sum()), scales.scale(half())),
                               hn::Set(f, x[r * x_pitch].scale), totals[r])),
       ...);
    }
    (std::make_integer_sequence<int64_t, rows>());
  });
  for (int64_t r = 0; r < rows; ++r) {
    if constexpr (kPacked<format>.has_offset()) {
      totals[r] = hn::MulAdd(scales.offset(), hn::Set(f, x[r * x_pitch].sum), totals[r]);
    }
    hn::StoreU(totals[r], f, sums + r * pitch);
  }
}

// Prefetches a cell's part of a packed block, kReadAheadBytes ahead in its group, at the end in the
// same group of the next tile. Cell by cell, because a core's miss buffers are fewer than the lines
// of a whole block.
template <WeightFormat format>
HWY_INLINE void fetch_ahead(const uint8_t* block, int64_t at, int64_t group_bytes, int64_t cell) {
  constexpr int64_t kLine = 64, kBytes = kPacked<format>.bytes(), kCells = kPacked<format>.cells;
  const auto ahead = static_cast<int64_t>(kReadAheadBytes);
  const uint8_t* from = block + ahead;
  if (at + ahead >= group_bytes) from += (cpu::PackedBlock::kGroups - 1) * group_bytes;
  const int64_t end = (cell + 1) * kBytes / kCells;
  for (int64_t i = (cell * kBytes / kCells + kLine - 1) / kLine * kLine; i < end; i += kLine) {
    hwy::Prefetch(from + i);
  }
}

// One tile. `first`: nobody has read it yet.
template <WeightFormat format, int64_t rows>
HWY_NOINLINE void tile_rows(const uint8_t* tile, int64_t inputs, const cpu::QuantizedBlock* x,
                            float* out, int64_t pitch, bool first) {
  const Floats f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t x_pitch = inputs / cpu::PackedBlock::kCellInputs;
  const int64_t group_bytes = x_pitch / kPacked<format>.cells * kPacked<format>.bytes();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < Packing::kPanel; c += lanes) {
      hn::StoreU(hn::Zero(f), f, out + r * pitch + c);
    }
  }
  constexpr int64_t kCells = kPacked<format>.cells;
  for (int64_t at = 0; at < group_bytes; at += kPacked<format>.bytes(), x += kCells) {
    const auto block = [&](int64_t group) HWY_ATTR { return tile + group * group_bytes + at; };
    for (int64_t o = 0; o < cpu::PackedBlock::kOutputs; o += lanes) {
      Scales<format> scales[] = {{block(0), o}, {block(1), o}, {block(2), o}, {block(3), o}};
      for (int64_t c = 0; c < kCells; ++c) {
        std::array<float, rows * cpu::PackedBlock::kCellInputs> integers;
        if constexpr (kPacked<format>.is_float) {
          for (int64_t r = 0; r < rows; ++r) {
            put_integers(x[r * x_pitch + c].words.data(),
                         integers.data() + r * cpu::PackedBlock::kCellInputs);
          }
        }
        for (int64_t group = 0; group < cpu::PackedBlock::kGroups; ++group) {
          if (first && o == 0) fetch_ahead<format>(block(group), at, group_bytes, c);
          scales[group].to_cell(c);
          const int64_t cell = kPacked<format>.cells_at() + c * kPacked<format>.cell_bytes();
          const uint8_t* const values = block(group) + cell + 4 * o;
          float* const sums = out + group * cpu::PackedBlock::kOutputs + o;
          if constexpr (kPacked<format>.is_float) {
            add_float_cell<format, rows>(values, scales[group], x + c, x_pitch, integers.data(),
                                         sums, pitch);
          } else {
            add_cell<format, rows>(values, scales[group], x + c, x_pitch, sums, pitch);
          }
        }
      }
    }
  }
}

template <WeightFormat format>
void product(const cpu::QuantizedProduct& p) {
  const auto* tile = reinterpret_cast<const uint8_t*>(p.tiles);
  const auto tile_bytes = static_cast<int64_t>(cpu::block_tile_bytes(format, p.inputs));
  const int64_t x_pitch = p.inputs / cpu::PackedBlock::kCellInputs;
  for (int64_t t = 0; t < p.tile_count; ++t, tile += tile_bytes) {
    cpu::for_row_groups<kMostRows>(p.rows, [&](auto count, int64_t row) {
      tile_rows<format, count()>(tile, p.inputs, p.x + row * x_pitch,
                                 p.out + row * p.out_pitch + t * Packing::kPanel, p.out_pitch,
                                 row == 0);
    });
  }
}

// A cell as rows of pairs: panel [16, kPanel, 2], from the first output's place on.
template <WeightFormat format>
HWY_INLINE void decode_cell(const uint8_t* cell, const Scales<format>& scales, uint32_t* panel) {
  constexpr int kEach = 8 / Scales<format>::kHalves;
  const Ints d;
  const Floats f;
  VFloats offsets[Scales<format>::kHalves];
  for (int h = 0; h < Scales<format>::kHalves; ++h) {
    offsets[h] = hn::Mul(hn::Set(f, static_cast<float>(-kPacked<format>.zero)), scales.scale(h));
    if constexpr (kPacked<format>.has_offset()) offsets[h] = scales.offset();
  }
  for_vectors<0, cpu::PackedBlock::kVectors>([&](auto v) HWY_ATTR {
    const auto words = values_of<kPacked<format>.bits, v()>(cell);
    // As fp32, with half of bf16's last bit added: the upper half is the value to the nearest.
    const auto rounded = [&](VWords value) HWY_ATTR {
      auto number = hn::ConvertTo(f, hn::BitCast(d, hn::And(value, in_each(0xff))));
      if constexpr (kPacked<format>.is_float) {
        number = hn::Mul(small_float<24>(value), hn::Set(f, kSmallFloat));
      }
      const auto exact = hn::MulAdd(number, scales.scale(v() / kEach), offsets[v() / kEach]);
      return hn::Add(hn::BitCast(Words(), exact), in_each(0x8000));
    };
    const auto store = [&](VWords first, VWords second, uint32_t* to) HWY_ATTR {
      const auto low = hn::ShiftRight<16>(rounded(first));
      hn::StoreU(hn::Or(low, hn::And(rounded(second), in_each(0xffff0000))), Words(), to);
    };
    store(words, hn::ShiftRight<8>(words), panel + 2 * v() * Packing::kPanel);
    store(hn::ShiftRight<16>(words), hn::ShiftRight<24>(words),
          panel + (2 * v() + 1) * Packing::kPanel);
  });
}

template <WeightFormat format>
void decode_tile(const uint8_t* block, int64_t inputs, uint32_t* panel) {
  constexpr int64_t kPairs = cpu::PackedBlock::kCellInputs / 2;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  const int64_t cells = inputs / cpu::PackedBlock::kCellInputs;
  for (int64_t group = 0; group < cpu::PackedBlock::kGroups; ++group) {
    for (int64_t first = 0; first < cells;
         first += kPacked<format>.cells, block += kPacked<format>.bytes()) {
      for (int64_t o = 0; o < cpu::PackedBlock::kOutputs; o += lanes) {
        Scales<format> scales(block, o);
        for (int64_t c = 0; c < kPacked<format>.cells; ++c) {
          scales.to_cell(c);
          decode_cell<format>(
              block + kPacked<format>.cells_at() + c * kPacked<format>.cell_bytes() + 4 * o, scales,
              panel + (first + c) * kPairs * Packing::kPanel + group * cpu::PackedBlock::kOutputs +
                  o);
        }
      }
    }
  }
}

// Calls visit(std::integral_constant<WeightFormat, f>()) for a format of blocks.
template <typename Visit>
void with_format(WeightFormat format, const Visit& visit) {
  using enum WeightFormat;
  [&]<WeightFormat... f>(std::integer_sequence<WeightFormat, f...>) {
    ((format == f ? visit(std::integral_constant<WeightFormat, f>()) : void()), ...);
  }
  (std::integer_sequence<WeightFormat, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ4_K, kQ5_K, kQ6_K,
                         kInt4_G32, kInt4_G64, kInt4_G128, kFp8_G32, kFp8_G128>());
}

void quantized_product(const cpu::QuantizedProduct& p) {
  with_format(p.format, [&](auto format) { product<format()>(p); });
}

void tile_to_bf16(WeightFormat format, const std::byte* tile, int64_t inputs, uint16_t* panel) {
  with_format(format, [&](auto f) {
    decode_tile<f()>(reinterpret_cast<const uint8_t*>(tile), inputs,
                     reinterpret_cast<uint32_t*>(panel));
  });
}

void quantize_block(const float* x, cpu::QuantizedBlock& block) {
  constexpr int64_t kValues = cpu::QuantizedBlock::kValues;
  const Floats f;
  const Ints d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  auto largest = hn::Zero(d);  // as bits, which are in the order of the values' sizes
  for (int64_t i = 0; i < kValues; i += lanes) {
    largest = hn::Max(largest, hn::BitCast(d, hn::Abs(hn::LoadU(f, x + i))));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(d, largest));
  constexpr auto kInfinity = std::bit_cast<int32_t>(std::numeric_limits<float>::infinity());
  const bool finite = bits < kInfinity;
  const float scale = std::bit_cast<float>(bits) / cpu::QuantizedBlock::kLargest;
  const bool none = !finite || scale < std::numeric_limits<float>::min();
  const auto inverse = hn::Set(f, none ? 0.0f : 1 / scale);
  block.half_sums = {0, 0};
  std::array<int32_t, kValues> integers;
  for (int64_t i = 0; i < kValues; i += lanes) {
    auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(f, x + i), inverse));
    if (none) rounded = hn::Zero(d);
    hn::StoreU(rounded, d, integers.data() + i);
    block.half_sums[static_cast<size_t>(i / 16)] += hn::GetLane(hn::SumOfLanes(d, rounded));
  }
  put_words(integers.data(), block.words.data());
  block.scale = finite ? (none ? 0 : scale) : std::numeric_limits<float>::quiet_NaN();
  block.sum = block.scale * static_cast<float>(block.half_sums[0] + block.half_sums[1]);
}

void quantize(const float* x, int64_t inputs, cpu::QuantizedBlock* blocks) {
  for (int64_t i = 0; i < inputs; i += cpu::QuantizedBlock::kValues) {
    quantize_block(x + i, *blocks++);
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(quantized_product);
HWY_EXPORT(tile_to_bf16);
HWY_EXPORT(quantize);

namespace cpu {

void quantized_product(const QuantizedProduct& product) {
  HWY_DYNAMIC_DISPATCH(quantized_product)(product);
}

void tile_to_bf16(WeightFormat format, const std::byte* tile, int64_t inputs, uint16_t* panel) {
  HWY_DYNAMIC_DISPATCH(tile_to_bf16)(format, tile, inputs, panel);
}

void quantize(const float* x, int64_t inputs, QuantizedBlock* blocks) {
  assert(inputs % QuantizedBlock::kValues == 0);
  HWY_DYNAMIC_DISPATCH(quantize)(x, inputs, blocks);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
