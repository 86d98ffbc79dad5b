// Threads, blocks and memory so that loads are in flight on all multiprocessors at all times.
#include "engine/codegen/cuda/cuda_product_shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr int64_t kPieceBytes = 16;
constexpr int64_t kMostHeld = 16;          // pieces of weights that a thread has registers for
constexpr int64_t kThreadsTogether = 512;  // of a multiprocessor: 128 registers each
// Shared memory of a block, static and asked for: the least that any GPU from sm_80 on has.
constexpr int64_t kMostShared = 98 * 1024;
constexpr int64_t kMostStaticShared = 48 * 1024;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct Sizes {
  int64_t element, pitch, columns, rows;  // rows: of a block at a time, a power of two
  bool known_one;                         // a run has one row
};

int64_t shared_inputs_bytes(const ProductKernel& product, int64_t rows) {
  return cuda_inputs_in_place(product) ? 0 : rows * ceil_div(product.inputs, 4) * 16;
}

// Warps and pieces so that few of them have nothing behind the last of `units`, of which a warp
// takes `lanes` a piece.
bool share_out(int64_t units, int64_t lanes, int64_t most_pieces, std::span<const int> numbers,
               CudaProductShape& shape) {
  std::optional<int64_t> least;
  for (const int64_t warps : numbers) {
    const int64_t pieces = ceil_div(units, warps * lanes);
    const int64_t idle = warps * lanes * pieces - units;
    if (pieces > most_pieces || (least && idle >= *least)) continue;
    least = idle;
    shape.threads = warps * 32;
    shape.pieces = pieces;
  }
  return least.has_value();
}

// A warp keeps its inputs of x, 8 registers a piece and 8 rows, and of up to 8 rows twice as many;
// a block reads x once for a multiprocessor. The ring has room for as much as is worth asking for
// before the kernels ahead have ended: twice that made a step slower.
bool on_tensor_cores(const ProductKernel& product, const Sizes& sizes, CudaProductShape& shape) {
  constexpr int64_t kMostUnits = 32, kColumns = 16;
  constexpr int64_t kPieceBytesOfColumns = kColumns * kCudaTensorRun * 2;
  constexpr std::array kWarps = {16, 15, 14, 13, 12, 11, 10, 9, 8};
  shape = {.form = CudaProductForm::kTensor, .rows = sizes.rows, .columns = kColumns};
  const int64_t inputs_bytes = shared_inputs_bytes(product, shape.rows);
  const int64_t units = ceil_div(sizes.pitch, kCudaTensorRun);
  shape.splits = ceil_div(units, kMostUnits);
  if (shape.splits > kCudaMultiprocessors) return false;
  share_out(ceil_div(units, shape.splits), 1, 2, kWarps, shape);
  const int64_t parts_bytes = cuda_tensor_parts_bytes(shape.threads / 32, shape.rows);
  if (inputs_bytes + parts_bytes > kMostStaticShared) return false;
  const int64_t lap_bytes = shape.threads / 32 * shape.pieces * kPieceBytesOfColumns;
  shape.laps = (kMostShared - parts_bytes - inputs_bytes) / lap_bytes;
  if (shape.laps == 0) return false;
  shape.blocks = std::min(kCudaMultiprocessors / shape.splits, sizes.columns / kColumns);
  shape.shared_bytes = shape.laps * lap_bytes;
  return true;
}

// Two blocks fit a multiprocessor, of one kernel or of two that follow each other. Blocks that
// share columns cost more than a library's product and the kernel behind it where rows are many.
bool by_warpgroups(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                   CudaProductShape& shape) {
  constexpr int64_t kColumns = 64, kRowsOfOneLoader = 32, kMostRowsOfSplits = 32,
                    kFewestBlocks = 96, kMostSplits = 8;
  constexpr int64_t kRingBytes = 100 * 1024, kAlignment = 1024, kBarrierBytes = 16;
  const int64_t columns = tile_count(product.packing) * product.packing.tile;
  const bool fits = kernel.buffers[product.weight].dtype != DType::kF32;
  if (kernel.target != "sm_90a" || !fits || rows > kCudaWarpgroupRows || columns % kColumns != 0 ||
      product.inputs % kCudaTensorRun != 0 || library_product(kernel, product).direct) {
    return false;
  }
  shape = {.form = CudaProductForm::kWarpgroups,
           .rows = ceil_div(rows, kProductRows) * kProductRows,
           .columns = kColumns,
           .blocks = columns / kColumns};
  if (shape.blocks < kFewestBlocks) {
    shape.splits = std::min({ceil_div(kCudaMultiprocessors, shape.blocks),
                             product.inputs / kCudaTensorRun, kMostSplits});
  }
  if (shape.blocks > kCudaCounters || (shape.splits > 1 && rows > kMostRowsOfSplits)) return false;
  shape.threads = 256 + 32 * (shape.rows <= kRowsOfOneLoader ? 1 : 2);
  shape.laps = kRingBytes / ((kColumns + shape.rows) * kCudaTensorRun * 2);
  shape.shared_bytes = cuda_warpgroup_ring_bytes(shape) + kAlignment + shape.laps * kBarrierBytes;
  return true;
}

// One round of blocks that all fit the GPU at once, each for columns one behind the other, rather
// than a few rounds: a block asks for its next weights before it sums what it has multiplied, and a
// new one would begin with nothing. Registers are bounded by what kernels without turns take.
void take_turns(CudaProductShape& shape) {
  constexpr int64_t kRegisters = 65536, kMostTurns = 8;
  const int64_t of_thread = 40 + 15 * shape.columns * shape.pieces / 2;
  const int64_t together = kRegisters / (shape.threads * of_thread);
  if (together < 2) return;
  const int64_t turns = ceil_div(shape.blocks, together * kCudaMultiprocessors);
  if (turns < 2 || turns > kMostTurns) return;
  shape.turns = turns;
  shape.blocks = ceil_div(shape.blocks, shape.turns);
  shape.together = together;
}

// As many columns as a thread has registers for, 64 of them for 16 bytes of each piece and column
// and 32 for sums; fewer if there would be few blocks.
// The bounds on inputs are where an H200 was faster (docs/engine-figures.md).
CudaProductShape held(const ProductKernel& product, const Sizes& sizes) {
  constexpr int64_t kMostSums = 32, kMostColumns = 8, kMostPieces = 16;
  constexpr int64_t kFewestBlocks = 200, kFewInputs = 2048, kManyInputs = 4096;
  constexpr std::array kWarps = {8, 7, 6, 5, 4};
  constexpr std::array kMoreWarps = {16};
  CudaProductShape shape{.rows = sizes.rows};
  const int64_t units = ceil_div(sizes.pitch * sizes.element, kPieceBytes);
  const auto pieces = [&] { return ceil_div(units, shape.threads); };
  if (!cuda_inputs_in_place(product)) {
    const int64_t most = kCudaMostSharedInputs / product.inputs;
    shape.rows = most == 0
                     ? 0
                     : std::min(shape.rows,
                                static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))));
  }
  // Two columns of what a thread has must fit its registers; of few inputs, no threads are idle.
  const bool few = sizes.element == 2 && sizes.pitch < kFewInputs;
  const bool shared_out = shape.rows == 1 && (few || 2 * pieces() > kMostHeld) &&
                          (share_out(units, 32, kMostHeld / 2, kWarps, shape) ||
                           share_out(units, 32, kMostHeld / 2, kMoreWarps, shape));
  const int64_t most_threads = shape.rows == 1 ? 512 : 256;  // several rows need the registers
  while (!shared_out && pieces() > kMostPieces && shape.threads < most_threads) shape.threads *= 2;
  shape.pieces = std::min(pieces(), shape.rows == 1 ? kMostPieces : kMostHeld / 4);
  // Several rows of x beside so many pieces spill where one stage has them all.
  const bool crowded =
      sizes.element == 2 && pieces() == shape.pieces && shape.pieces >= (product.norm ? 3 : 4);
  if (shape.rows > 1 && crowded) shape.pieces = kMostHeld / 8;
  shape.columns = kMostColumns;
  while (shape.columns > 2 &&
         (shape.columns * shape.pieces > kMostHeld || shape.columns * shape.rows > kMostSums ||
          sizes.columns / shape.columns < kFewestBlocks)) {
    shape.columns /= 2;
  }
  shape.blocks = sizes.columns / shape.columns;
  const bool many = sizes.pitch >= kManyInputs && (shape.columns > 2 || shape.threads > 128);
  if (shape.rows == 1 && (many || sizes.element == 4)) {
    shape.together = std::max<int64_t>(kThreadsTogether / shape.threads, 1);
  }
  const bool at_once = sizes.element == 2 && pieces() == shape.pieces;
  if (sizes.known_one && at_once && shape.together == 1) take_turns(shape);
  return shape;
}

}  // namespace

bool cuda_inputs_in_place(const ProductKernel& product) {
  return product.norm || !product.has_prologue;
}

CudaProductShape cuda_product_shape(const Kernel& kernel, const ProductKernel& product) {
  const DType dtype = kernel.buffers[product.weight].dtype;
  const std::optional<int64_t> known = cuda_form_rows(kernel, product.rows);
  const auto rows =
      static_cast<uint64_t>(std::clamp<int64_t>(known.value_or(kProductRows), 1, kProductRows));
  const Sizes sizes{.element = static_cast<int64_t>(dtype_size_bytes(dtype)),
                    .pitch = Packing::padded_inputs(product.inputs),
                    .columns = tile_count(product.packing) * product.packing.tile,
                    .rows = static_cast<int64_t>(std::bit_ceil(rows)),
                    .known_one = known == 1};
  const CudaProductShape registers = held(product, sizes);
  // A norm's factor comes behind the product: what goes in may be beyond fp16's largest.
  const bool fits = dtype == DType::kBF16 || (dtype == DType::kF16 && !product.norm);
  // A prompt's products of more rows are the library's.
  const bool decodes = product.rows.power(1) == 0 || kernel.dims.q_len == 1;
  if (CudaProductShape staged; known && *known > kCudaTensorRows && decodes &&
                               by_warpgroups(kernel, product, *known, staged)) {
    return staged;
  }
  if (!fits || !known || *known < 2 || *known > (decodes ? kCudaTensorRows : kProductRows)) {
    return registers;
  }
  CudaProductShape ring;
  Sizes ring_sizes = sizes;
  if (*known > kProductRows) ring_sizes.rows = ceil_div(*known, kProductRows) * kProductRows;
  return on_tensor_cores(product, ring_sizes, ring) ? ring : registers;
}

int64_t cuda_product_workspace(const CudaProductShape& shape, const ProductKernel& product) {
  if (shape.form == CudaProductForm::kWarpgroups) {
    const int64_t x = shape.rows * Packing::padded_inputs(product.inputs) / 2;
    return x + (shape.splits == 1 ? 0 : shape.splits * shape.rows * shape.columns * shape.blocks);
  }
  if (shape.splits == 1) return 0;
  const int64_t columns = tile_count(product.packing) * product.packing.tile;
  return shape.splits * shape.rows * (columns + shape.blocks);  // sums; squares for a norm
}

}  // namespace assay::engine
