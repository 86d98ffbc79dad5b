// Each thread has tiles that follow one another, so that what a tile prefetches is its own.
#include "engine/ops/cpu/block_linear.h"

#include <algorithm>

#include "engine/model/convert.h"
#include "engine/ops/cpu/block_product.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/ops/element.h"
#include "engine/weight_layout.h"

namespace assay::engine::cpu {
namespace {

// out[r, i] += bias[i] for i in [begin, end).
void add_block_bias(const TensorView& bias, float* out, int64_t rows, int64_t outputs,
                    int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float offset = load_element(bias.data, bias.element(), i);
    for (int64_t r = 0; r < rows; ++r) out[r * outputs + i] += offset;
  }
}

}  // namespace

Status BlockLinear::reserve(size_t x_bytes, size_t scratch_bytes) {
  if (x_.size_bytes() < x_bytes) {
    x_ = HugeMemory();
    ASSAY_TRY(x_, HugeMemory::allocate(x_bytes));
  }
  if (scratch_bytes_ < scratch_bytes) {
    scratch_ = HugeMemory();
    scratch_bytes_ = 0;
    ASSAY_TRY(scratch_, HugeMemory::allocate(scratch_bytes * pool_.size()));
    scratch_bytes_ = scratch_bytes;
  }
  return {};
}

Status BlockLinear::run(const float* x, const BlockWeight& weight, const TensorView* bias,
                        float* out, int64_t rows) {
  constexpr int64_t kTile = Packing::kPanel;
  const BlockInputs form(rows, weight.inputs);
  const int64_t tiles = (weight.outputs + kTile - 1) / kTile;
  const size_t tile_bytes = block_tile_bytes(weight.format, weight.inputs);
  ASSAY_CHECK(reserve(static_cast<size_t>(rows * form.row_bytes()),
                      static_cast<size_t>(block_scratch_floats(weight.inputs)) * sizeof(float)));
  pool_.parallel_for(static_cast<size_t>(rows), kMostIntegerRows, [&](size_t begin, size_t end) {
    for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r) {
      form.make(x + r * weight.inputs, weight.input_order, x_.data() + r * form.row_bytes());
    }
  });
  const auto multiply = [&](int64_t t, int64_t count, float* to, int64_t pitch, size_t thread) {
    block_product(form,
                  {.x = x_.data(),
                   .rows = rows,
                   .inputs = weight.inputs,
                   .format = weight.format,
                   .tiles = weight.tiles + static_cast<size_t>(t) * tile_bytes,
                   .tile_count = count,
                   .out = to,
                   .out_pitch = pitch},
                  reinterpret_cast<float*>(scratch_.data() + thread * scratch_bytes_));
  };
  const auto threads = static_cast<int64_t>(pool_.size());
  const int64_t whole = weight.outputs / kTile;  // tiles
  pool_.run([&](size_t thread) {
    const auto at = static_cast<int64_t>(thread);
    const int64_t begin = tiles * at / threads, end = tiles * (at + 1) / threads;
    const int64_t first = begin * kTile, last = std::min(weight.outputs, end * kTile);
    multiply(begin, std::min(end, whole) - begin, out + first, weight.outputs, thread);
    if (end > whole) {
      std::vector<float>& products = products_[thread];
      products.resize(std::max(products.size(), static_cast<size_t>(rows * kTile)));
      multiply(whole, 1, products.data(), kTile, thread);
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(&products[static_cast<size_t>(r * kTile)], weight.outputs - whole * kTile,
                    out + r * weight.outputs + whole * kTile);
      }
    }
    if (bias != nullptr) add_block_bias(*bias, out, rows, weight.outputs, first, last);
  });
  return {};
}

}  // namespace assay::engine::cpu
