// A block of inputs of one panel stays in the second-level cache while groups of rows pass over it;
// the sums of a group stay in registers over the block. Halves are widened a block at a time, so
// that the widening is shared by all rows.
#include "engine/ops/cpu/panel_product.h"

#include <algorithm>

#include "engine/ops/cpu/amx.h"
#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/pointwise.h"
#include "engine/ops/cpu/row_groups.h"
#include "engine/weight_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/panel_product.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kWidth = Packing::kPanel;

#if HWY_TARGET <= HWY_AVX3
// 32 registers: 24 of sums, four of weights, one of x. A seventh row would put a sum into memory.
constexpr int64_t kVectors = 4;
constexpr int64_t kGroupRows = 6;
#else
// 16 registers: 12 sums.
constexpr int64_t kVectors = 2;
constexpr int64_t kGroupRows = 6;
#endif

// Sums of `rows` rows and `vectors` vectors of columns over some inputs.
template <int64_t rows, int64_t vectors>
HWY_INLINE void micro(const float* HWY_RESTRICT x, int64_t x_pitch,
                      const float* HWY_RESTRICT weights, int64_t inputs, float* HWY_RESTRICT out,
                      int64_t out_pitch, bool add) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[rows][vectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(d);
  }
  for (int64_t i = 0; i < inputs; ++i) {
    hn::Vec<decltype(d)> ws[vectors];
    for (int64_t v = 0; v < vectors; ++v) ws[v] = hn::Load(d, weights + i * kWidth + v * lanes);
    for (int64_t r = 0; r < rows; ++r) {
      const auto value = hn::Set(d, x[r * x_pitch + i]);
      for (int64_t v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(value, ws[v], sums[r][v]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      float* to = out + r * out_pitch + v * lanes;
      hn::StoreU(add ? hn::Add(sums[r][v], hn::LoadU(d, to)) : sums[r][v], d, to);
    }
  }
}

// One block of inputs against one group of rows.
template <int64_t rows>
HWY_NOINLINE void rows_block(const float* x, int64_t x_pitch, const float* weights, int64_t inputs,
                             float* out, int64_t out_pitch, bool add) {
  const hn::CappedTag<float, 16> d;
  const auto step = kVectors * static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < kWidth; column += step) {
    micro<rows, kVectors>(x, x_pitch, weights + column, inputs, out + column, out_pitch, add);
  }
}

void block_product(const float* x, int64_t x_pitch, int64_t rows, const float* weights,
                   int64_t inputs, float* out, int64_t out_pitch, bool add) {
  cpu::for_row_groups<kGroupRows>(rows, [&](auto count, int64_t row) {
    rows_block<count()>(x + row * x_pitch, x_pitch, weights, inputs, out + row * out_pitch,
                        out_pitch, add);
  });
}

// out [2 * pairs, kWidth] = a panel's pairs of bf16.
void widen_pairs(const uint16_t* panel, int64_t pairs, float* HWY_RESTRICT out) {
  const hn::CappedTag<uint32_t, 16> d;
  const hn::RebindToFloat<decltype(d)> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* words = reinterpret_cast<const uint32_t*>(panel);
  for (int64_t i = 0; i < pairs; ++i) {
    for (int64_t c = 0; c < kWidth; c += lanes) {
      const auto both = hn::LoadU(d, words + i * kWidth + c);
      const auto second = hn::And(both, hn::Set(d, 0xffff0000u));
      hn::Store(hn::BitCast(df, hn::ShiftLeft<16>(both)), df, out + 2 * i * kWidth + c);
      hn::Store(hn::BitCast(df, second), df, out + (2 * i + 1) * kWidth + c);
    }
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(block_product);
HWY_EXPORT(widen_pairs);

namespace cpu {
namespace {

constexpr int64_t kPanel = Packing::kPanel;
constexpr int64_t kBlockBytes = int64_t{256} << 10;  // of weights
constexpr int64_t kBlock = kBlockBytes / (kPanel * static_cast<int64_t>(sizeof(float)));  // inputs

// `inputs` of a panel from one on that starts a row of memory, as fp32.
const float* widened(const std::byte* weights, DType dtype, int64_t inputs, float* scratch) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(weights);
  if (dtype == DType::kBF16) {
    HWY_DYNAMIC_DISPATCH(widen_pairs)
    (reinterpret_cast<const uint16_t*>(weights), (inputs + 1) / 2, scratch);
  } else {
    convert_to_f32(weights, dtype, scratch, inputs * kPanel);
  }
  return scratch;
}

void tiles_product(const PanelProduct& p, const std::byte* weights, const std::byte* next,
                   float* out) {
  amx_panel_product({.x = static_cast<const uint16_t*>(p.x),
                     .x_pitch = p.x_pitch,
                     .rows = p.rows,
                     .inputs = p.inputs,
                     .panel = reinterpret_cast<const uint16_t*>(weights),
                     .out = out,
                     .out_pitch = p.out_pitch,
                     .next = reinterpret_cast<const uint16_t*>(next)});
}

// The padding behind an odd number of inputs is multiplied by zeros.
void dot_product(const PanelProduct& p, const std::byte* weights, float* out) {
  constexpr int64_t kPairs = kBlock;  // half the bytes an input
  const auto* x = static_cast<const uint16_t*>(p.x);
  const int64_t all = (p.inputs + 1) / 2;
  for (int64_t i = 0; i < all; i += kPairs) {
    const int64_t pairs = std::min(kPairs, all - i);
    const std::byte* block = weights + 2 * i * kPanel * static_cast<int64_t>(sizeof(uint16_t));
    bf16_block_product(x + 2 * i, p.x_pitch, p.rows, reinterpret_cast<const uint16_t*>(block),
                       pairs, out, p.out_pitch, i > 0);
  }
}

void widened_product(const PanelProduct& p, const std::byte* weights, float* out, float* scratch) {
  const auto block = HWY_DYNAMIC_DISPATCH(block_product);
  const auto* x = static_cast<const float*>(p.x);
  const auto element = static_cast<int64_t>(dtype_size_bytes(p.dtype));
  for (int64_t i = 0; i < p.inputs; i += kBlock) {
    const int64_t inputs = std::min(kBlock, p.inputs - i);
    const std::byte* stored = weights + i * kPanel * element;
    block(x + i, p.x_pitch, p.rows, widened(stored, p.dtype, inputs, scratch), inputs, out,
          p.out_pitch, i > 0);
  }
}

}  // namespace

int64_t panel_scratch_floats() {
  return kBlock * kPanel;
}

DType panel_x_dtype(DType weights) {
  static const bool dot = has_bf16_dot();
  return weights == DType::kBF16 && dot ? DType::kBF16 : DType::kF32;
}

bool panel_uses_tiles(DType weights) {
  return panel_x_dtype(weights) == DType::kBF16 && has_amx_bf16();
}

int64_t panel_row_pitch(int64_t width, DType dtype) {
  const auto line = static_cast<int64_t>(64 / dtype_size_bytes(dtype));
  return (((width + line - 1) / line) | 1) * line;
}

void panel_product(const PanelProduct& p, float* scratch) {
  const auto panel_bytes =
      Packing::padded_inputs(p.inputs) * kPanel * static_cast<int64_t>(dtype_size_bytes(p.dtype));
  const bool rounded = p.x_dtype == DType::kBF16, tiles = rounded && panel_uses_tiles(p.dtype);
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    const std::byte* weights = p.panels + panel * panel_bytes;
    const std::byte* next = panel + 1 < p.panel_count ? weights + panel_bytes : p.next;
    float* out = p.out + panel * kPanel;
    if (tiles) {
      tiles_product(p, weights, next, out);
    } else if (rounded) {
      dot_product(p, weights, out);
    } else {
      widened_product(p, weights, out, scratch);
    }
  }
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
