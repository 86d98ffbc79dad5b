// A block of inputs of one panel stays in the second-level cache while groups of rows pass over it;
// the sums of a group stay in registers over the block. Halves are widened a block at a time, so
// that the widening is shared by all rows.
#include "engine/ops/cpu/panel_product.h"

#include <algorithm>

#include "engine/graph/graph.h"
#include "engine/ops/cpu/pointwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/panel_product.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kWidth = Packing::kPanel;

#if HWY_TARGET <= HWY_AVX3
// 32 registers: 28 of sums, four of weights with x broadcast in the multiplication or beside it.
constexpr int64_t kVectors = 4;
constexpr int64_t kGroupRows = 7;
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

// The group that is left: count <= rows.
template <int64_t rows>
void rest_block(int64_t count, const float* x, int64_t x_pitch, const float* weights,
                int64_t inputs, float* out, int64_t out_pitch, bool add) {
  if (count == rows) return rows_block<rows>(x, x_pitch, weights, inputs, out, out_pitch, add);
  if constexpr (rows > 1) {
    rest_block<rows - 1>(count, x, x_pitch, weights, inputs, out, out_pitch, add);
  }
}

void block_product(const float* x, int64_t x_pitch, int64_t rows, const float* weights,
                   int64_t inputs, float* out, int64_t out_pitch, bool add) {
  int64_t r = 0;
  for (; r + kGroupRows <= rows; r += kGroupRows) {
    rows_block<kGroupRows>(x + r * x_pitch, x_pitch, weights, inputs, out + r * out_pitch,
                           out_pitch, add);
  }
  if (r < rows) {
    rest_block<kGroupRows - 1>(rows - r, x + r * x_pitch, x_pitch, weights, inputs,
                               out + r * out_pitch, out_pitch, add);
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(block_product);

namespace cpu {
namespace {

constexpr int64_t kPanel = Packing::kPanel;
constexpr int64_t kBlock = 512;  // inputs: 128 KiB of fp32 weights

}  // namespace

int64_t panel_scratch_floats() {
  return kBlock * kPanel;
}

int64_t panel_row_pitch(int64_t width) {
  constexpr int64_t kLine = 16;
  const int64_t lines = (width + kLine - 1) / kLine;
  return (lines | 1) * kLine;
}

void panel_product(const PanelProduct& p, float* scratch) {
  const auto block = HWY_DYNAMIC_DISPATCH(block_product);
  const int64_t padded =
      (p.inputs + Packing::kPanelInputs - 1) / Packing::kPanelInputs * Packing::kPanelInputs;
  const auto element = static_cast<int64_t>(dtype_size_bytes(p.dtype));
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    const std::byte* weights = p.panels + panel * padded * kPanel * element;
    for (int64_t i = 0; i < p.inputs; i += kBlock) {
      const int64_t inputs = std::min(kBlock, p.inputs - i);
      const auto* values = reinterpret_cast<const float*>(weights + i * kPanel * element);
      if (p.dtype != DType::kF32) {
        convert_to_f32(weights + i * kPanel * element, p.dtype, scratch, inputs * kPanel);
        values = scratch;
      }
      block(p.x + i, p.x_pitch, p.rows, values, inputs, p.out + panel * kPanel, p.out_pitch, i > 0);
    }
  }
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
