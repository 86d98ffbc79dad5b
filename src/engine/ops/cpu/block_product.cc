// A tile is decoded once for all of its rows into the second-level cache, where their product reads
// it.
#include "engine/ops/cpu/block_product.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/panel_product.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/ops/cpu/quantized_product.h"

namespace assay::engine::cpu {

double block_rounding() {
  constexpr double kBf16 = 1.0 / 512, kIntegers = 0.5 / QuantizedBlock::kLargest;
  return panel_x_dtype(DType::kBF16) == DType::kBF16 ? kBf16 : kIntegers;
}

BlockInputs::BlockInputs(int64_t rows, int64_t inputs)
    : inputs_(inputs),
      in_integers_(rows <= kMostIntegerRows),
      dtype_(panel_x_dtype(DType::kBF16)),
      row_bytes_(
          in_integers_
              ? inputs / QuantizedBlock::kValues * static_cast<int64_t>(sizeof(QuantizedBlock))
              : panel_row_pitch(inputs, dtype_) * static_cast<int64_t>(dtype_size_bytes(dtype_))) {}

// Inputs are whole blocks, so no zeros have to follow them (panel_row_inputs()).
void BlockInputs::make(const float* x, const int32_t* order, std::byte* row) const {
  const auto put = [&](const float* values, int64_t first, int64_t count) {
    if (in_integers_) {
      quantize(values, count,
               reinterpret_cast<QuantizedBlock*>(row) + first / QuantizedBlock::kValues);
    } else if (dtype_ == DType::kBF16) {
      round_to_bf16(values, count, reinterpret_cast<uint16_t*>(row) + first);
    } else {
      std::copy_n(values, count, reinterpret_cast<float*>(row) + first);
    }
  };
  if (order == nullptr) return put(x, 0, inputs_);
  std::array<float, 8 * QuantizedBlock::kValues> some;
  for (int64_t first = 0; first < inputs_; first += std::ssize(some)) {
    const int64_t count = std::min(std::ssize(some), inputs_ - first);
    for (int64_t i = 0; i < count; ++i) some[static_cast<size_t>(i)] = x[order[first + i]];
    put(some.data(), first, count);
  }
}

void block_product(const BlockInputs& form, const BlockProduct& p, float* scratch) {
  if (form.in_integers()) {
    return quantized_product({.x = reinterpret_cast<const QuantizedBlock*>(p.x),
                              .rows = p.rows,
                              .inputs = p.inputs,
                              .format = p.format,
                              .tiles = p.tiles,
                              .tile_count = p.tile_count,
                              .out = p.out,
                              .out_pitch = p.out_pitch});
  }
  const size_t tile_bytes = block_tile_bytes(p.format, p.inputs);
  for (int64_t t = 0; t < p.tile_count; ++t) {
    tile_to_bf16(p.format, p.tiles + static_cast<size_t>(t) * tile_bytes, p.inputs,
                 reinterpret_cast<uint16_t*>(scratch));
    panel_product(
        {.x = p.x,
         .x_dtype = form.dtype(),
         .x_pitch = form.row_bytes() / static_cast<int64_t>(dtype_size_bytes(form.dtype())),
         .rows = p.rows,
         .inputs = p.inputs,
         .panels = reinterpret_cast<const std::byte*>(scratch),
         .dtype = DType::kBF16,
         .panel_count = 1,
         .out = p.out + t * Packing::kPanel,
         .out_pitch = p.out_pitch},
        scratch + p.inputs * Packing::kPanel / 2);
  }
}

int64_t block_scratch_floats(int64_t inputs) {
  return inputs * Packing::kPanel / 2 + panel_scratch_floats();
}

}  // namespace assay::engine::cpu
