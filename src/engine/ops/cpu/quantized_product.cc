// Products of tiles, and tiles as bf16, cell by cell, and the rounding of x.
#include "engine/ops/cpu/quantized_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "engine/ops/cpu/row_groups.h"

#define HWY_WANT_AVX3_DL  // has VNNI, but Highway 1.0 names it to no compiler: hence assembly
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/quantized_product.cc"
#include "hwy/foreach_target.h"  // must come first

#include "engine/ops/cpu/float_cells-inl.h"
#include "engine/ops/cpu/integer_cells-inl.h"
#include "engine/ops/cpu/quantized_vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kMostRows = 4;  // that share a cell's values in registers

// Asks for the part of the stream that lies some way behind [from, from + bytes). The processor's
// own prefetching keeps up with few formats (docs/engine-figures.md, "Weights in blocks").
template <int64_t bytes>
HWY_INLINE void ask_ahead(const uint8_t* from) {
  constexpr int64_t kLine = 64, kAhead = 8192;  // a quarter of it, or four times it, reaches less
  for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(from + kAhead + i);
}

// One tile, read from its first byte to its last by few instructions: the loop over cells must stay
// one. x of the cells of floats is in `integers`, [rows, inputs].
template <WeightFormat format, int64_t rows>
HWY_NOINLINE void tile_rows(const uint8_t* block, int64_t inputs, const cpu::QuantizedBlock* all_x,
                            [[maybe_unused]] const float* integers, float* out, int64_t pitch) {
  constexpr int64_t kCells = kPacked<format>.cells;
  constexpr int64_t kValues = cpu::PackedBlock::kCellInputs;
  const Floats f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t x_pitch = inputs / kValues;
  for (int64_t r = 0; r < rows; ++r) std::fill_n(out + r * pitch, Packing::kPanel, 0.0f);
  for (int64_t group = 0; group < cpu::PackedBlock::kGroups; ++group) {
    float* const sums = out + group * cpu::PackedBlock::kOutputs;
    for (const cpu::QuantizedBlock* x = all_x; x < all_x + x_pitch; x += kCells) {
      for (int64_t o = 0; o < cpu::PackedBlock::kOutputs; o += lanes) {
        VFloats totals[rows];
        for_each<0, rows>(
            [&](auto r) ASSAY_CELL_ATTR { totals[r()] = hn::LoadU(f, sums + r() * pitch + o); });
        if (o == 0) ask_ahead<kPacked<format>.cells_at()>(block);
        Scales<format> scales(block, o);
        const uint8_t* cell = block + kPacked<format>.cells_at() + 4 * o;
        for (int64_t c = 0; c < kCells; ++c, cell += kPacked<format>.cell_bytes()) {
          if (o == 0) ask_ahead<kPacked<format>.cell_bytes()>(cell);
          scales.to_cell(c);
          if constexpr (kPacked<format>.is_float) {
            const float* const numbers = integers + (x + c - all_x) * kValues;
            add_float_cell<format, rows>(cell, scales, x + c, x_pitch, numbers, totals);
          } else {
            add_integer_cell<format, rows>(cell, scales, x + c, x_pitch, totals);
          }
        }
        for_each<0, rows>(
            [&](auto r) ASSAY_CELL_ATTR { hn::StoreU(totals[r()], f, sums + r() * pitch + o); });
      }
      block += kPacked<format>.bytes();
    }
  }
}

template <WeightFormat format>
void product(const cpu::QuantizedProduct& p) {
  constexpr int64_t kValues = cpu::PackedBlock::kCellInputs;
  const auto tile_bytes = static_cast<int64_t>(cpu::block_tile_bytes(format, p.inputs));
  const int64_t x_pitch = p.inputs / kValues;
  thread_local std::vector<float> integers;  // [rows, inputs], for values that are floats
  if constexpr (kPacked<format>.is_float) {
    integers.resize(static_cast<size_t>(p.rows * p.inputs));
    for (int64_t i = 0; i < p.rows * x_pitch; ++i) {
      put_integers(p.x[i].words.data(), integers.data() + i * kValues);
    }
  }
  const auto* tile = reinterpret_cast<const uint8_t*>(p.tiles);
  for (int64_t t = 0; t < p.tile_count; ++t, tile += tile_bytes) {
    cpu::for_row_groups<kMostRows>(p.rows, [&](auto count, int64_t row) {
      tile_rows<format, count()>(
          tile, p.inputs, p.x + row * x_pitch,
          kPacked<format>.is_float ? &integers[static_cast<size_t>(row * p.inputs)] : nullptr,
          p.out + row * p.out_pitch + t * Packing::kPanel, p.out_pitch);
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
    if constexpr (kPacked<format>.has_offset()) offsets[h] = hn::Neg(scales.less());
  }
  for_each<0, cpu::PackedBlock::kVectors>([&](auto v) ASSAY_CELL_ATTR {
    const auto words = values_of<format, v()>(cell);
    // As fp32, with half of bf16's last bit added: the upper half is the value to the nearest.
    const auto rounded = [&](VWords value) ASSAY_CELL_ATTR {
      auto number = hn::ConvertTo(f, hn::BitCast(d, hn::And(value, in_each(0xff))));
      if constexpr (kPacked<format>.is_float) {
        number = hn::Mul(small_float<24>(value), hn::Set(f, kSmallFloat));
      }
      const auto exact = hn::MulAdd(number, scales.scale(v() / kEach), offsets[v() / kEach]);
      return hn::Add(hn::BitCast(Words(), exact), in_each(0x8000));
    };
    const auto store = [&](VWords first, VWords second, uint32_t* to) ASSAY_CELL_ATTR {
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
  for_each<0, static_cast<int>(kFormats.size())>([&](auto i) {
    if constexpr (kFormats[i()].block_values > 1) {
      if (format == kFormats[i()].format) {
        visit(std::integral_constant<WeightFormat, kFormats[i()].format>());
      }
    }
  });
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
