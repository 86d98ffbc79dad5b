// Threads take the next tile when they are done.
#include "engine/ops/cpu/block_linear.h"

#include <algorithm>
#include <atomic>

#include "engine/model/convert.h"
#include "engine/ops/cpu/block_product.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/ops/element.h"
#include "engine/weight_layout.h"

namespace assay::engine::cpu {

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
      form.make(x + r * weight.inputs, x_.data() + r * form.row_bytes());
    }
  });
  std::atomic<int64_t> next = 0;
  pool_.run([&](size_t thread) {
    auto* const scratch = reinterpret_cast<float*>(scratch_.data() + thread * scratch_bytes_);
    std::vector<float>& products = products_[thread];
    products.resize(static_cast<size_t>(rows * kTile));
    for (int64_t t = next++; t < tiles; t = next++) {
      block_product(form,
                    {.x = x_.data(),
                     .rows = rows,
                     .inputs = weight.inputs,
                     .format = weight.format,
                     .tiles = weight.tiles + static_cast<size_t>(t) * tile_bytes,
                     .out = products.data(),
                     .out_pitch = kTile},
                    scratch);
      const int64_t first = t * kTile, count = std::min(kTile, weight.outputs - first);
      for (int64_t r = 0; r < rows; ++r) {
        float* const to = out + r * weight.outputs + first;
        std::copy_n(&products[static_cast<size_t>(r * kTile)], count, to);
        if (bias == nullptr) continue;
        for (int64_t c = 0; c < count; ++c)
          to[c] += load_element(bias->data, bias->element(), first + c);
      }
    }
  });
  return {};
}

}  // namespace assay::engine::cpu
