// The form kWarpgroups: which products have it, and the sizes of its tiles. Times are a model's,
// fitted to what kernels took on an H200 (docs/engine-figures.md, "Products with their epilogues"
// and "Parts of a product's inputs").
#include <algorithm>
#include <array>
#include <optional>

#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

// As many columns' sums at a time as leave room for enough stages, or those of all where parts of
// the inputs meet. A block has threads for the norm ahead, too.
void set_stages(const ProductKernel& product, CudaProductShape& shape) {
  constexpr int64_t kMostBytes = 226 * 1024, kAlignment = 1024, kMostStages = 8, kEnoughStages = 4;
  constexpr int64_t kMostThreads = 512;
  const int64_t stage_bytes = (shape.columns + shape.rows) * kCudaTensorRun * 2;
  for (const int64_t columns : {64, 32}) {
    if (shape.splits == 1 && shape.columns % columns != 0) continue;
    shape.round = shape.splits > 1 ? shape.columns : columns;
    const int64_t beside =
        kAlignment + cuda_warpgroup_parts_bytes(shape) + cuda_warpgroup_barriers_bytes(kMostStages);
    shape.laps = std::min((kMostBytes - beside) / stage_bytes, kMostStages);
    shape.shared_bytes = shape.laps * stage_bytes + beside;
    if (shape.laps >= kEnoughStages) break;
  }
  shape.threads = 2 * shape.rows + 32;
  while (product.norm && shape.threads < kMostThreads && !is_norm_held(product, shape.threads)) {
    shape.threads += 32;
  }
}

// Times of a run, in ns.
class MappedTimes {
 public:
  MappedTimes(const ProductKernel& product, int64_t rows)
      : runs_(product.inputs / kCudaTensorRun),
        rows_(rows),
        columns_(packed_columns(product.packing)),
        weight_bytes_(columns_ * product.inputs * 2),
        heads_(!product.packing.interleaved && product.packing.half_head > 1) {}

  int64_t of(const CudaProductShape& shape) const {
    constexpr int64_t kBytesPerNs = 3700, kCachedBytesPerNs = 10'000;
    const int64_t tiles = ceil_div(rows_, shape.rows) * shape.blocks;
    const int64_t through_cache = tiles * (shape.columns + shape.rows) * runs_ * 128;
    const int64_t read = std::max(weight_bytes_ / kBytesPerNs, through_cache / kCachedBytesPerNs);
    if (shape.splits > 1) {
      constexpr int64_t kBytesOfBlockPerNs = 90;
      const int64_t turns = ceil_div(tiles, clusters_of(shape.splits));
      const int64_t run = (shape.columns + shape.rows) * 128 / kBytesOfBlockPerNs;
      const int64_t end = (shape.splits == 2 ? 700 : 2300) + (heads_ ? 1500 : 0);
      return kLaunch + std::max(turns * ceil_div(runs_, shape.splits) * run, read) + turns * end;
    }
    const int64_t size = shape.columns * shape.rows / 1024;  // of a tile
    const int64_t run = std::max<int64_t>(30 + 20 * size, 150),
                  end = 200 + 60 * size + (heads_ ? 700 : 0);
    const int64_t turns = ceil_div(tiles, kCudaMultiprocessors);
    const int64_t beside = through_cache / 400'000;  // of others' reads from memory
    return kLaunch + std::max(turns * runs_ * run, read) + beside + turns * end;
  }
  bool has_heads() const { return heads_; }
  // The kernel behind the library's product, where there is one.
  int64_t behind_library(bool direct) const {
    return direct ? 0 : kLaunch + rows_ * columns_ * 6 / 10'000;
  }
  // With that kernel. The library shares the inputs of few tiles.
  int64_t by_library(bool direct) const {
    constexpr int64_t kBytesPerNs = 3500, kSharedBytesPerNs = 2700, kProductsPerNs = 390'000;
    constexpr int64_t kTile = 128, kRun = 150;
    const int64_t multiply = columns_ * runs_ * kCudaTensorRun * rows_ / kProductsPerNs;
    const int64_t tiles = ceil_div(rows_, kTile) * ceil_div(columns_, kTile);
    int64_t product = std::max({weight_bytes_ / kBytesPerNs, multiply, runs_ * kRun});
    if (tiles <= kCudaMultiprocessors / 2) {
      product = std::min(product, kLaunch + std::max(weight_bytes_ / kSharedBytesPerNs, multiply));
    }
    return (kLaunch + product + behind_library(direct)) * 102 / 100;
  }

 private:
  static constexpr int64_t kLaunch = 2000;
  // Clusters of so many blocks that an H200 runs at a time.
  static int64_t clusters_of(int64_t blocks) { return blocks == 2 ? 66 : 30; }

  int64_t runs_, rows_, columns_, weight_bytes_;
  bool heads_;  // rotary pairs and caches lie behind lengths and tables
};

struct Fastest {
  CudaProductShape shape;
  int64_t ns = 0, library_ns = 0, behind_library_ns = 0;
};

// Sizes are a few, so that runs of any number of rows need few kernels. Absent: the library is
// faster, or the form doesn't fit. Two limits are measured, and aren't the model's: above 4096
// rows tiles of the same columns read more rows than the cache keeps, and rotary pairs and caches
// behind wider tiles took up to 17 us more than the model has (docs/engine-figures.md, "Wide
// tiles").
std::optional<Fastest> fastest(const Kernel& kernel, const ProductKernel& product, int64_t rows) {
  struct Sizes {
    int64_t splits, rows, columns;
  };
  constexpr int64_t kMostRows = 4096, kMostHeadColumns = 128;
  constexpr std::array<Sizes, 11> kSizes = {{{1, 64, 64},
                                             {1, 64, 128},
                                             {1, 64, 256},
                                             {1, 128, 64},
                                             {1, 128, 128},
                                             {1, 128, 224},
                                             {1, 128, 256},
                                             {2, 64, 64},
                                             {2, 128, 64},
                                             {4, 64, 72},
                                             {4, 128, 72}}};
  const DType dtype = kernel.buffers[product.weight].dtype;
  if (kernel.target != "sm_90a" || rows <= kCudaTensorRows || rows > kMostRows ||
      dtype == DType::kF32 || multiplies_fp8(kernel, product) || product.codes_output ||
      product.inputs % kCudaTensorRun != 0 || !unit_epilogue_blocks(kernel, product)) {
    return std::nullopt;
  }
  const int64_t all_columns = packed_columns(product.packing);
  const bool direct = library_product(kernel, product).direct.has_value();
  const MappedTimes times(product, rows);
  const int64_t by_library = times.by_library(direct);
  std::optional<Fastest> found;
  for (const Sizes& sizes : kSizes) {
    CudaProductShape one{.form = CudaProductForm::kWarpgroups,
                         .rows = sizes.rows,
                         .columns = sizes.columns,
                         .splits = sizes.splits,
                         .blocks = ceil_div(all_columns, sizes.columns)};
    const bool fits = one.splits == 1 ? !direct && all_columns % one.columns == 0
                                      : product.inputs / kCudaTensorRun >= one.splits;
    if (!fits || (times.has_heads() && one.columns > kMostHeadColumns)) continue;
    set_stages(product, one);
    const int64_t ns = times.of(one);
    if (ns >= (found ? found->ns : by_library)) continue;
    found = {one, ns, by_library, times.behind_library(direct)};
  }
  return found;
}

}  // namespace

bool cuda_by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                        CudaProductShape& shape) {
  const auto found = fastest(kernel, product, rows);
  if (found) shape = found->shape;
  return found.has_value();
}

double cuda_beside_library_us(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                              double library_us) {
  const auto found = fastest(kernel, product, rows);
  if (!found) return library_us;
  const double behind_us = static_cast<double>(found->behind_library_ns) * 1e-3;
  const double share = static_cast<double>(found->ns) / static_cast<double>(found->library_ns);
  return std::max(share * (library_us + behind_us) - behind_us, 0.0);
}

}  // namespace assay::engine
