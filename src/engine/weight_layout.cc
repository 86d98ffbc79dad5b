// Tiles of a segment follow each other; interleaved, a tile has columns of both segments.
#include "engine/weight_layout.h"

#include <fmt/ranges.h>

namespace assay::engine {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The column of its segment that is packed at this one.
int64_t in_head_order(const Packing& packing, int64_t column) {
  if (packing.half_head == 0) return column;
  const int64_t head_dim = 2 * packing.half_head, at = column % head_dim;
  return column - at + at / 2 + at % 2 * packing.half_head;
}

}  // namespace

std::string to_string(const Packing& packing) {
  std::string text =
      fmt::format("tile={} segments=[{}]{}", packing.tile, fmt::join(packing.segments, ","),
                  packing.interleaved ? " interleaved" : "");
  if (packing.layout == TileLayout::kRows) text += " rows";
  if (packing.half_head > 0) text += fmt::format(" half_head={}", packing.half_head);
  return text;
}

int64_t tile_count(const Packing& packing) {
  if (packing.interleaved) return ceil_div(packing.segments[0], packing.tile / 2);
  int64_t tiles = 0;
  for (const int64_t width : packing.segments) tiles += ceil_div(width, packing.tile);
  return tiles;
}

int64_t packed_elements(const Packing& packing, int64_t inputs) {
  return packed_columns(packing) * Packing::padded_inputs(inputs);
}

int64_t packed_output(const Packing& packing, int64_t column) {
  const int64_t tile = column / packing.tile;
  const int64_t at = column % packing.tile;
  if (packing.interleaved) {
    const int64_t half = packing.tile / 2;
    const int64_t width = packing.segments[0];
    const bool rows = packing.layout == TileLayout::kRows;
    const int64_t output = tile * half + (rows ? at / 2 : at % half);
    const bool second = rows ? at % 2 == 1 : at >= half;
    return output < width ? output + (second ? width : 0) : -1;
  }
  int64_t first_tile = 0;
  int64_t first_output = 0;
  for (const int64_t width : packing.segments) {
    const int64_t tiles = (width + packing.tile - 1) / packing.tile;
    if (tile < first_tile + tiles) {
      const int64_t output = in_head_order(packing, (tile - first_tile) * packing.tile + at);
      return output < width ? first_output + output : -1;
    }
    first_tile += tiles;
    first_output += width;
  }
  return -1;
}

}  // namespace assay::engine
