// Products of any number of rows with tiles of a weight in blocks, on the calling thread alone: of
// few rows by integers, of more by panels of bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine::cpu {

// Products of more rows than this go through bf16: decoding a tile takes as long as the integer
// products of some ten rows.
inline constexpr int64_t kMostIntegerRows = 8;

// The rounding of x in these products, relative to the value or to the largest beside it: half a
// step, the larger of the two forms'. Products of the same x whose last bits differ may differ by
// so much, as eager and compiled steps' do.
double block_rounding();

// The form of x in a product of `rows` rows, each row made once for all tiles.
class BlockInputs {
 public:
  BlockInputs(int64_t rows, int64_t inputs);

  bool in_integers() const { return in_integers_; }
  // The type of x where it isn't in integers: panel_x_dtype() of bf16.
  DType dtype() const { return dtype_; }
  int64_t row_bytes() const { return row_bytes_; }
  // Row of x, [inputs], to row_bytes(), which begin at a multiple of 4. `order`:
  // TensorView::input_order of the weight.
  void make(const float* x, const int32_t* order, std::byte* row) const;

 private:
  int64_t inputs_;
  bool in_integers_;
  DType dtype_;
  int64_t row_bytes_;
};

// out[r, 64 t + c] = sum over i of x[r, i] * tile t [c, i].
struct BlockProduct {
  const std::byte* x = nullptr;  // rows as `form` made them, one behind the other
  int64_t rows = 0;              // at most those of `form`
  int64_t inputs = 0;
  WeightFormat format = WeightFormat::kQ8_0;
  const std::byte* tiles = nullptr;  // quantized_layout.h; 32-byte aligned
  int64_t tile_count = 1;
  float* out = nullptr;  // [rows, out_pitch]; the first 64 * tile_count of each row are written
  int64_t out_pitch = 0;
};
// `scratch`: block_scratch_floats() of the calling thread's, 64-byte aligned.
void block_product(const BlockInputs& form, const BlockProduct& product, float* scratch);
int64_t block_scratch_floats(int64_t inputs);

}  // namespace assay::engine::cpu
