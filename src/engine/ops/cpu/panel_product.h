// Products of many rows with packed panels of a weight, on the calling thread alone: run by the
// compiled executor between a kernel's prologue and its epilogue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor.h"

namespace assay::engine::cpu {

// out[r, 64 p + c] = sum over i < inputs of x[r, i] * panel p [i, c], summed in fp32.
struct PanelProduct {
  const void* x = nullptr;      // [rows, x_pitch]: the first `inputs` of each row count
  DType x_dtype = DType::kF32;  // or, with panels of bf16 where panel_x_dtype() says so, bf16:
                                // zeros follow the inputs up to panel_row_inputs()
  int64_t x_pitch = 0;          // elements; for bf16 at least panel_row_inputs()
  int64_t rows = 0;
  int64_t inputs = 0;
  const std::byte* panels = nullptr;  // see Packing in weight_layout.h; 64-byte aligned
  DType dtype = DType::kF32;          // of the panels
  int64_t panel_count = 0;
  const std::byte* next = nullptr;  // panels that the caller multiplies next, if any; prefetched
                                    // where panel_uses_tiles()
  float* out = nullptr;  // [rows, out_pitch]; the first panel_count * 64 of each row are written
  int64_t out_pitch = 0;
};

// `scratch`: panel_scratch_floats() of the calling thread's, 64-byte aligned.
void panel_product(const PanelProduct& product, float* scratch);
int64_t panel_scratch_floats();

// The type to round x to for the fastest product with weights of a type: bf16 if weights are and
// the processor multiplies them itself, else fp32. PyTorch rounds there too, on any processor.
DType panel_x_dtype(DType weights);

// True if products with weights of a type, and x of panel_x_dtype(), use the processor's matrix
// tiles (AMX): then pieces of kTileRows rows or a multiple leave none of them half empty, and a
// panel is multiplied in less time than memory needs to deliver the next one.
bool panel_uses_tiles(DType weights);
inline constexpr int64_t kTileRows = 32;

// Inputs of a row of x in bf16, with the zeros behind them.
constexpr int64_t panel_row_inputs(int64_t inputs) {
  return (inputs + 31) / 32 * 32;
}

// The pitch >= width, in elements, at which rows of a matrix don't fall into the same few sets of a
// cache.
int64_t panel_row_pitch(int64_t width, DType dtype);

}  // namespace assay::engine::cpu
