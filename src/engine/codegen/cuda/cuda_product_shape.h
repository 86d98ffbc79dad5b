// The cut of a product's work on a GPU: the form of its kernel, and the sizes.
#pragma once

#include <compare>
#include <cstdint>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// A kernel that reads the weight asks for it before the kernels ahead have ended, and keeps asking
// while it computes.
enum class CudaProductForm {
  // A block takes a few columns over all inputs, each thread a share of the inputs, held in
  // registers. The product may have any number of rows.
  kHeld,
  // 2 to kCudaTensorRows rows of a weight of 16 bits (of fp16 without a norm), on tensor cores, 16
  // columns at a time, from a ring in shared memory that each warp fills for itself. A block takes
  // at most 2048 inputs, so that the ring has room for them and a warp's x stays in registers:
  // the last of the blocks that share columns takes the others' sums. Weights in blocks
  // (block_slots.h) may have any number of rows, a block of the launch for each `rows` of them.
  kTensor,
  // One row of a weight in blocks, on tensor cores too: a block takes 16 columns over all inputs,
  // all of which it asks for before the kernels ahead have ended.
  kOneRow,
  // More rows of a weight of 16 bits, by warpgroups (sm_90a), where a model expects that to take
  // less time than a library's product, with the kernel behind it where there is one. A tile is
  // `rows` by `columns`.
  // The launch's blocks share all tiles; or the blocks of a cluster multiply `splits` parts of a
  // tile's inputs, and each ends as many of its rows. Both operands come by tensor maps
  // (CudaLaunches::matrices). The workspace has the rows, if a prologue writes them.
  kWarpgroups,
  // Many rows of a weight in blocks, by warpgroups (sm_90a): a tile is 256 columns by `rows` rows,
  // and `blocks` tiles share the rows; the launch's blocks share all tiles. Weights become values
  // in registers. The workspace has the rows as they are multiplied, and parts of shared tiles.
  kTiles,
};
constexpr int64_t kCudaTensorRows = 16;  // of a step of decoding, at most
constexpr int64_t kCudaBlockRows = 32;   // likewise of weights in blocks
// Rows of the form kTiles, at most: the time model (cuda_tile_shape.cc) expects a library to
// multiply llama3.1-8b's products in less time from 1,100 to 2,000 rows on.
constexpr int64_t kCudaTileRows = 1024;

constexpr int64_t kCudaRegisters = 65536;  // of a multiprocessor

struct CudaProductShape {
  CudaProductForm form = CudaProductForm::kHeld;
  int64_t threads = 128;
  int64_t rows = 1;  // at a time: a power of two, or, tensor, above 8 a multiple of 8, or,
                     // warpgroups, 64 or 128; 0: the inputs of one don't fit
  int64_t columns =
      1;  // at a time; held: a block's, a power of two that divides the packing's tiles
  int64_t pieces = 1;     // of 16 bytes that a thread has of a column; tensor: of kCudaTensorRun
                          // inputs that a warp has; of blocks, one row too: slots
  int64_t round = 0;      // tensor, warpgroups: columns whose sums are in shared memory at a time
  int64_t turns = 1;      // one row: that a block takes columns one behind the other
  int64_t together = 1;   // blocks that a multiprocessor must have registers for
  int64_t registers = 0;  // of a thread at most; 0: `together` says it
  int64_t laps =
      0;  // of the ring: times 16 columns, or, warpgroups, kCudaTensorRun inputs, or, tiles, a slot
  int64_t splits = 1;        // of the inputs; warpgroups: blocks of a cluster
  int64_t blocks = 1;        // that share the columns
  int64_t shared_bytes = 0;  // of the ring and a round's sums: more than a kernel has by itself
  int64_t near_bytes = 0;    // held, tensor: bytes of a block's later weights, at most, that it
                             // asks the second-level cache for before the wait
  friend auto operator<=>(const CudaProductShape&, const CudaProductShape&) = default;
};
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t kCudaTensorRun = 64;  // inputs: 128 bytes of a column
// Columns that a warp, or some lanes of it, take at once in an epilogue.
constexpr int64_t cuda_task_columns(int64_t rows) {
  return rows <= kProductRows ? 32 : 16;
}
constexpr int64_t kCudaSumsPadding = 4;  // columns behind a row's: rows' stores meet all banks
// Bytes of shared memory for a round's sums, and for squares, of all warps.
constexpr int64_t cuda_tensor_parts_bytes(const CudaProductShape& shape) {
  return shape.threads / 32 * shape.rows * (shape.round + kCudaSumsPadding + 1) * 4;
}
// Likewise at most for the units of x that weights in blocks multiply, and, of few rows, its sums.
constexpr int64_t cuda_block_sums_bytes(const CudaProductShape& shape) {
  constexpr int64_t kCells = 4;  // of a piece
  const bool few = shape.rows <= kProductRows;
  return shape.threads / 32 * 4 * (few ? shape.pieces * kCells * kProductRows * 2 : shape.rows);
}
CudaProductShape cuda_product_shape(const Kernel& kernel, const ProductKernel& product);

// Rows of the form kTensor at most: of a prompt fewer, since the library multiplies the rest.
int64_t cuda_most_tensor_rows(const Kernel& kernel, const ProductKernel& product);

// Words ahead of the workspace that blocks which share columns leave for the last of them in a run
// of so many rows, and floats of the workspace, behind the counters. Weights in blocks have words
// for each `shape.rows` of them.
int64_t cuda_product_words(const CudaProductShape& shape, const ProductKernel& product,
                           int64_t rows);
int64_t cuda_product_workspace(const CudaProductShape& shape, const ProductKernel& product,
                               int64_t rows);

// True if inputs are read where they lie, as they are or behind an RMS norm. Any other prologue
// puts them into shared memory, all rows of a block.
bool cuda_inputs_in_place(const ProductKernel& product);
constexpr int64_t kCudaMostSharedInputs = 11'000;

}  // namespace assay::engine
