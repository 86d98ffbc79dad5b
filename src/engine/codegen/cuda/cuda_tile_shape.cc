// Times are a model's, fitted to what kernels took on an H200 (docs/engine-figures.md, "Prompts in
// blocks, by tiles").
#include <algorithm>

#include "engine/block_cells.h"
#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

constexpr int64_t kTileColumns = 256, kTileThreads = 512, kMostTileRows = 128;

// Times of a run, in ns.
class Times {
 public:
  Times(const CudaProductShape& shape, const ProductKernel& product, int64_t rows)
      : rows_of_tile_(shape.rows),
        tiles_(ceil_div(rows, shape.rows) * shape.blocks),
        slots_(CudaSlot::count(product.inputs)),
        has_segments_(product.packing.segments.size() > 1 && !product.packing.interleaved) {}

  int64_t tiles() const { return tiles_; }
  int64_t slots() const { return slots_; }
  int64_t whole_tiles(int64_t blocks) const {
    return kLaunch + tiles_ / blocks * (slots_ * slot() + finish());
  }
  int64_t parts_of_each(int64_t parts) const {
    return kLaunch + ceil_div(slots_, parts) * slot() + kMeet + (parts - 1) * part() + finish();
  }
  int64_t any_shares() const {
    const int64_t most = ceil_div(tiles_ * slots_, kCudaMultiprocessors);
    return kLaunch + most * slot() + 2 * kMeet + part() +
           (ceil_div(tiles_, kCudaMultiprocessors) + 1) * finish();
  }

 private:
  static constexpr int64_t kLaunch = 4000, kMeet = 3000;
  int64_t slot() const { return 400 + 9 * rows_of_tile_; }
  int64_t finish() const { return (has_segments_ ? 52 : 28) * rows_of_tile_; }  // RoPE, caches
  int64_t part() const { return 18 * rows_of_tile_; }  // that another block has left

  int64_t rows_of_tile_, tiles_, slots_;
  bool has_segments_;
};

struct Cut {
  int64_t blocks = 0, time = 0;
};
Cut best_cut(const Times& times) {
  constexpr int64_t kMostParts = 8;
  Cut best;
  const auto consider = [&](int64_t blocks, int64_t time) {
    if (best.blocks == 0 || time < best.time) best = {blocks, time};
  };
  const int64_t rounds = ceil_div(times.tiles(), kCudaMultiprocessors);
  if (times.tiles() % rounds == 0) {
    consider(times.tiles() / rounds, times.whole_tiles(times.tiles() / rounds));
  }
  for (int64_t parts = 2; parts <= std::min(kMostParts, times.slots()); ++parts) {
    if (parts * times.tiles() > kCudaMultiprocessors) break;
    consider(parts * times.tiles(), times.parts_of_each(parts));
  }
  const int64_t all = std::min(kCudaMultiprocessors, times.tiles() * times.slots());
  if (times.tiles() > kCudaMultiprocessors / kMostParts) consider(all, times.any_shares());
  return best;
}

// A weight decoded and multiplied, each by a kernel, and what comes behind it.
int64_t time_by_library(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        int64_t columns) {
  constexpr double kLaunches = 10'000, kDecode = 0.75e-3, kRead = 0.5e-3, kMultiply = 2.5e-6;
  const auto weights = static_cast<double>(product.inputs * columns);
  const double multiplied = weights * std::max(kRead, kMultiply * static_cast<double>(rows));
  const double outputs = static_cast<double>(rows * columns);
  const double behind = library_product(kernel, product).direct ? 0 : 3000 + 0.5e-3 * outputs;
  return static_cast<int64_t>(kLaunches + kDecode * weights + multiplied + behind);
}

// A kernel writes the rows as tiles multiply them, unless the one before has; it takes a norm
// along.
int64_t time_of_rows(const ProductKernel& product, int64_t rows) {
  return product.norm || product.tiled_input ? 0 : 2500 + rows * product.inputs / 800;
}

}  // namespace

bool cuda_by_tiles(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                   CudaProductShape& shape) {
  constexpr int64_t kMostStages = 4, kGrain = 32;
  constexpr int64_t kAlignment = 1024, kBarrierBytes = 16, kAllShared = 227 * 1024;
  constexpr int64_t kSumsBytes = 16 * (kTileColumns + 4) * 4;  // of 16 rows, padded
  const auto& blocks = kernel.buffers[product.weight].blocks;
  const bool reads = product.norm ? is_norm_held(product, kTileThreads) : !product.has_prologue;
  if (kernel.target != "sm_90a" || rows > kCudaTileRows || blocks->ordered || !reads ||
      block_parts(blocks->format).is_float || product.inputs % kCudaTensorRun != 0 ||
      multiplies_fp8(kernel, product)) {
    return false;
  }
  const int64_t tiles = ceil_div(rows, kMostTileRows);
  const int64_t columns = packed_columns(product.packing);
  shape = {.form = CudaProductForm::kTiles,
           .threads = kTileThreads,
           .rows = ceil_div(rows, tiles * kGrain) * kGrain,
           .columns = kTileColumns,
           .blocks = ceil_div(columns, kTileColumns)};
  const int64_t stage_bytes = ceil_div(shape.rows * CudaSlot::kInputs * 2 +
                                           kTileColumns / 16 * cuda_slot(blocks->format).bytes,
                                       kAlignment) *
                              kAlignment;
  shape.laps =
      std::min(kMostStages, (kAllShared - kAlignment - kSumsBytes) / (stage_bytes + kBarrierBytes));
  shape.shared_bytes = kAlignment + kSumsBytes + shape.laps * (stage_bytes + kBarrierBytes);
  if (shape.blocks * ceil_div(kCudaTileRows, shape.rows) > kCudaCounters) return false;
  const int64_t time = best_cut({shape, product, rows}).time + time_of_rows(product, rows);
  return product.by_itself || time < time_by_library(kernel, product, rows, columns);
}

bool may_write_tiled_rows(const Kernel& first, const Kernel& second) {
  const auto* writer = std::get_if<ProductKernel>(&first.body);
  const auto* reader = std::get_if<ProductKernel>(&second.body);
  if (writer == nullptr || reader == nullptr || reader->has_prologue) return false;
  const auto rows = cuda_form_rows(first, writer->rows);
  const CudaProductShape shape = cuda_product_shape(first, *writer);
  ProductKernel asked = *reader;
  asked.tiled_input = true;
  const CudaProductShape read = cuda_product_shape(second, asked);
  const DType narrow = second.buffers[reader->weight].dtype;
  return rows && shape.form == CudaProductForm::kTiles && read.form == CudaProductForm::kTiles &&
         shape.rows == read.rows && ceil_div(*rows, shape.rows) * shape.rows <= 2 * *rows &&
         writer->packing.segments[0] == reader->inputs &&
         second.buffers[reader->x].dtype == narrow && stores_rows_by_units(first, *writer);
}

int64_t cuda_tile_blocks(const CudaProductShape& shape, const ProductKernel& product,
                         int64_t rows) {
  return best_cut({shape, product, rows}).blocks;
}

int64_t cuda_tile_workspace(const CudaProductShape& shape, const ProductKernel& product,
                            int64_t rows) {
  const int64_t tiles = ceil_div(rows, shape.rows), part = shape.rows * shape.columns;
  return tiles * shape.rows * Packing::padded_inputs(product.inputs) / 2 +
         2 * kCudaMultiprocessors * part;
}

}  // namespace assay::engine
