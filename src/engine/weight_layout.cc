// Tiles of a segment follow each other; interleaved, a tile has columns of both segments.
#include "engine/weight_layout.h"

#include <fmt/ranges.h>

namespace assay::engine {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::string to_string(const Packing& packing) {
  return fmt::format("tile={} segments=[{}]{}", packing.tile, fmt::join(packing.segments, ","),
                     packing.interleaved ? " interleaved" : "");
}

int64_t tile_count(const Packing& packing) {
  if (packing.interleaved) return ceil_div(packing.segments[0], packing.tile / 2);
  int64_t tiles = 0;
  for (const int64_t width : packing.segments) tiles += ceil_div(width, packing.tile);
  return tiles;
}

int64_t packed_elements(const Packing& packing, int64_t inputs) {
  return tile_count(packing) * packing.tile * Packing::padded_inputs(inputs);
}

int64_t packed_output(const Packing& packing, int64_t column) {
  const int64_t tile = column / packing.tile;
  const int64_t at = column % packing.tile;
  if (packing.interleaved) {
    const int64_t half = packing.tile / 2;
    const int64_t width = packing.segments[0];
    const int64_t output = tile * half + at % half;
    return output < width ? output + (at < half ? 0 : width) : -1;
  }
  int64_t first_tile = 0;
  int64_t first_output = 0;
  for (const int64_t width : packing.segments) {
    const int64_t tiles = (width + packing.tile - 1) / packing.tile;
    if (tile < first_tile + tiles) {
      const int64_t output = (tile - first_tile) * packing.tile + at;
      return output < width ? first_output + output : -1;
    }
    first_tile += tiles;
    first_output += width;
  }
  return -1;
}

}  // namespace assay::engine
