// Layouts of products' weights in memory: as the checkpoint has them, and packed for a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace assay::engine {

// The layout of a product's weight in a checkpoint.
enum class WeightLayout {
  kOutIn,  // [out, in]: torch's Linear
  kInOut,  // [in, out]: GPT-2's Conv1D
};

// The layout of a packed weight's columns in memory: the one that the device's kernels read.
enum class TileLayout {
  // Panels of kPanel columns, each [inputs padded to a multiple of kPanelInputs, kPanel], one
  // behind the other; inputs of bf16 lie in pairs, [inputs / 2, kPanel, 2], as the dot products of
  // processors take them.
  kPanels,
  // Column by column, each its inputs, padded: an input of a column is at column * padded inputs +
  // input. A warp reads columns from end to end, and a library takes all of them as one matrix
  // whose inputs are contiguous: its outputs then are columns in packed order, padding too.
  kRows,
};

// A compiled executor's layout of a product's weight, for its kernels alone: the value is the
// same. The outputs fall into `segments` (widths that add up to all of them), each padded with
// zeros to whole tiles of `tile` columns. Interleaved, there are two equal segments, and tile i
// holds tile / 2 columns of the first and the same columns of the second: one behind the other in
// panels, alternating in rows. With half heads, in rows alone, columns c and c + half_head of a
// head, which RoPE turns together, stand side by side, for c from 0.
struct Packing {
  static constexpr int64_t kPanel = 64;
  static constexpr int64_t kPanelInputs = 16;
  static constexpr int64_t padded_inputs(int64_t inputs) {
    return (inputs + kPanelInputs - 1) / kPanelInputs * kPanelInputs;
  }
  // Inputs of a column that lie side by side in a panel.
  static constexpr int64_t abreast(DType dtype) { return dtype == DType::kBF16 ? 2 : 1; }
  // Offset of an input of a panel's column, in elements.
  static constexpr int64_t element(DType dtype, int64_t input, int64_t column) {
    const int64_t n = abreast(dtype);
    return (input / n * kPanel + column) * n + input % n;
  }
  int64_t tile = kPanel;  // a multiple of kPanel
  std::vector<int64_t> segments;
  bool interleaved = false;
  TileLayout layout = TileLayout::kPanels;
  int64_t half_head = 0;  // 0: columns in their own order
  friend bool operator==(const Packing&, const Packing&) = default;
  friend auto operator<=>(const Packing&, const Packing&) = default;
};

// "tile=64 segments=[128,64]", "tile=64 segments=[128,64] rows half_head=32"
std::string to_string(const Packing& packing);

int64_t tile_count(const Packing& packing);  // tiles of a packed weight
// Its columns, those behind a segment's last included.
inline int64_t packed_columns(const Packing& packing) {
  return tile_count(packing) * packing.tile;
}
int64_t packed_elements(const Packing& packing, int64_t inputs);  // of its memory
// The product's output that a column of a packed weight holds; -1 in the padding.
int64_t packed_output(const Packing& packing, int64_t column);

}  // namespace assay::engine
