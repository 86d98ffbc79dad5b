// The form kWarpgroups: which products have it, and the sizes of its tiles. Times are a model's,
// fitted to what kernels took on an H200 (docs/engine-figures.md, "Products with their epilogues").
#include <algorithm>
#include <array>

#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"

namespace assay::engine {
namespace {

constexpr int64_t kGroup = 64;  // lines of the left operand that a warpgroup multiplies
constexpr int64_t kAlignment = 1024, kBarrierBytes = 16;

// As many columns' sums at a time as leave room for enough stages. A block has threads for the norm
// ahead, too.
void set_stages(const ProductKernel& product, CudaProductShape& shape, int64_t most_bytes) {
  constexpr int64_t kMostStages = 8, kEnoughStages = 4, kMostThreads = 512;
  const int64_t stage_bytes = (shape.columns + shape.rows) * kCudaTensorRun * 2 + kBarrierBytes;
  for (const int64_t columns : {64, 32}) {
    shape.round = columns;
    const int64_t beside = kAlignment + cuda_warpgroup_parts_bytes(shape);
    shape.laps = std::min((most_bytes - beside) / stage_bytes, kMostStages);
    shape.shared_bytes = shape.laps * stage_bytes + beside;
    if (shape.laps >= kEnoughStages) break;
  }
  shape.threads = 2 * (shape.rows_left ? shape.rows : shape.columns) + 32;
  while (product.norm && shape.threads < kMostThreads && !is_norm_held(product, shape.threads)) {
    shape.threads += 32;
  }
}

// With few rows, weights are the left operand, of which a warpgroup multiplies 64 lines whatever
// there is. Two blocks fit a multiprocessor, of one kernel or of two that follow each other. Blocks
// that share columns cost more than a library's product and the kernel behind it where rows are
// many.
bool of_some_rows(const ProductKernel& product, int64_t rows, CudaProductShape& shape) {
  constexpr int64_t kMostRowsOfSplits = 32, kFewestBlocks = 96, kSplitsAtMost = 8;
  constexpr int64_t kHalfOfHopper = 112 * 1024;
  shape.rows = ceil_div(rows, kProductRows) * kProductRows;
  shape.columns = kGroup;
  shape.blocks = packed_columns(product.packing) / kGroup;
  shape.together = 2;
  if (shape.blocks < kFewestBlocks) {
    shape.splits = std::min({ceil_div(kCudaMultiprocessors, shape.blocks),
                             product.inputs / kCudaTensorRun, kSplitsAtMost});
  }
  if (shape.splits > 1 && rows > kMostRowsOfSplits) return false;
  set_stages(product, shape, kHalfOfHopper);
  return true;
}

// Times of a run, in ns.
class MappedTimes {
 public:
  MappedTimes(const ProductKernel& product, int64_t rows)
      : runs_(product.inputs / kCudaTensorRun),
        rows_(rows),
        columns_(packed_columns(product.packing)),
        weight_bytes_(columns_ * product.inputs * 2) {}

  int64_t of(const CudaProductShape& shape) const {
    constexpr int64_t kBytesPerNs = 3700, kCachedBytesPerNs = 10'000;
    const int64_t size = shape.columns * shape.rows / 1024;  // of a tile
    const int64_t tiles = ceil_div(rows_, shape.rows) * shape.blocks;
    const int64_t run = std::max<int64_t>(30 + 20 * size, 150), end = 200 + 60 * size;
    const int64_t turns = ceil_div(tiles, kCudaMultiprocessors);
    const int64_t through_cache = tiles * (shape.columns + shape.rows) * runs_ * 128;
    const int64_t read = std::max(weight_bytes_ / kBytesPerNs, through_cache / kCachedBytesPerNs);
    const int64_t beside = through_cache / 400'000;  // of others' reads from memory
    return kLaunch + std::max(turns * runs_ * run, read) + beside + turns * end;
  }
  // With the kernel behind it.
  int64_t by_library() const {
    constexpr int64_t kBytesPerNs = 3500, kProductsPerNs = 390'000, kRun = 150;
    const int64_t multiply = columns_ * runs_ * kCudaTensorRun * rows_ / kProductsPerNs;
    const int64_t product = std::max({weight_bytes_ / kBytesPerNs, multiply, runs_ * kRun});
    return (2 * kLaunch + product + rows_ * columns_ * 6 / 10'000) * 102 / 100;
  }

 private:
  static constexpr int64_t kLaunch = 2000;
  int64_t runs_, rows_, columns_, weight_bytes_;
};

// The fastest of a few sizes, so that runs of any number of rows need few kernels.
bool of_many_rows(const ProductKernel& product, int64_t rows, CudaProductShape& shape) {
  constexpr std::array<int64_t, 2> kLeftRows = {64, 128};
  constexpr std::array<int64_t, 3> kRightColumns = {64, 128, 256};
  constexpr int64_t kAllShared = 226 * 1024;
  const MappedTimes times(product, rows);
  int64_t least = times.by_library();
  bool found = false;
  for (const int64_t tile_rows : kLeftRows) {
    for (const int64_t columns : kRightColumns) {
      CudaProductShape one = shape;
      one.rows_left = true;
      one.rows = tile_rows;
      one.columns = columns;
      one.blocks = packed_columns(product.packing) / columns;
      set_stages(product, one, kAllShared);
      const bool fits = one.blocks * columns == packed_columns(product.packing);
      if (!fits || times.of(one) >= least) continue;
      least = times.of(one);
      shape = one;
      found = true;
    }
  }
  return found;
}

}  // namespace

bool cuda_by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        CudaProductShape& shape) {
  constexpr int64_t kFewRowsOfSteps = 64, kFewRowsOfPrompts = 32;
  const DType dtype = kernel.buffers[product.weight].dtype;
  const bool fits = dtype != DType::kF32 && !multiplies_fp8(kernel, product) &&
                    !product.codes_output && product.inputs % kCudaTensorRun == 0 &&
                    packed_columns(product.packing) % Packing::kPanel == 0;
  if (kernel.target != "sm_90a" || rows <= kCudaTensorRows || !fits ||
      library_product(kernel, product).direct) {
    return false;
  }
  shape = {.form = CudaProductForm::kWarpgroups};
  // Rotary pairs and caches lie behind lengths and tables, and too few threads would load them.
  const Packing& packing = product.packing;
  const bool loads_little =
      packing.interleaved || (packing.segments.size() == 1 && packing.half_head <= 1);
  const bool step = kernel.dims.q_len == 1 || product.rows.power(1) == 0;  // or last rows
  if (step && rows <= kFewRowsOfSteps) return of_some_rows(product, rows, shape);
  if (!loads_little) return false;
  return rows <= kFewRowsOfPrompts ? of_some_rows(product, rows, shape)
                                   : of_many_rows(product, rows, shape);
}

}  // namespace assay::engine
