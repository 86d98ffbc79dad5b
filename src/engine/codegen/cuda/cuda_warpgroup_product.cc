// One of rows and weights is the left operand, and both come by tensor maps.
#include "engine/codegen/cuda/cuda_warpgroup_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

// A stage of the ring has 64 inputs of ROWS rows and of GRAIN columns, the left operand first:
// lines of 128 bytes in wgmma's swizzle of 128 bytes, as the maps make them. A warpgroup multiplies
// 64 lines of the left operand; the first thread behind them asks for both, for weights before the
// kernels ahead have ended, as many as the ring has room for.
constexpr std::string_view kMappedRun = R"(
// The map's lines from `line` on, of 64 elements from `at` on: zeros behind the matrix's last line.
__device__ __forceinline__ void ask(unsigned to, const TensorMap& map, int at, int line, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :: "r"(to), "l"(&map), "r"(at), "r"(line), "r"(barrier) : "memory");
}
// Tiles of the same columns lie one behind the other, so that the cache has their weights.
__device__ __forceinline__ int row_tiles(const Args& args) { return (int)((rows_of(args) + ROWS - 1) / ROWS); }
struct Tile { int row, column; };
__device__ __forceinline__ Tile tile_of(int number, int of_rows) {
  const Tile tile = {number % of_rows * ROWS, number / of_rows * GRAIN};
  return tile;
}
// Lines that the map of rows copies at a time: zeros behind the last row would take longer than rows do. Lines behind them keep
// old values, whose sums nobody reads.
__device__ __forceinline__ int copied_rows(const Args& args) { return rows_of(args) < ROWS ? (int)(rows_of(args) + 7) / 8 * 8 : (int)ROWS; }
__device__ __forceinline__ void ask_weights(const Args& args, unsigned shared, const Tile& of, int run, int stage) {
  arrive_expecting(full(shared, stage), (GRAIN + copied_rows(args)) * 128);
  ask(shared + stage * STAGE_BYTES + (ROWS_LEFT ? LEFT_BYTES : 0), args.weights, run * RUN, of.column, full(shared, stage));
}
__device__ __forceinline__ void ask_rows(const Args& args, unsigned shared, const Tile& of, int run, int stage) {
  ask(shared + stage * STAGE_BYTES + (ROWS_LEFT ? 0 : LEFT_BYTES), args.rows, run * RUN, of.row, full(shared, stage));
}
// All runs of the block's tiles, `count` of each from `first` on.
__device__ __forceinline__ void ask_for_all(const Args& args, unsigned shared, int first, int count) {
  const int of_rows = row_tiles(args), tiles = of_rows * COLUMN_TILES, ahead = count < STAGES ? count : (int)STAGES;
  const Tile own = tile_of(blockIdx.x, of_rows);
  for (int i = 0; i < ahead; ++i) ask_weights(args, shared, own, first + i, i);
  wait_for_kernels_ahead();
  for (int i = 0; i < ahead; ++i) ask_rows(args, shared, own, first + i, i);
  int asked = ahead;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Tile of = tile_of(number, of_rows);
    for (int i = number == (int)blockIdx.x ? ahead : 0; i < count; ++i, ++asked) {
      const int stage = asked % STAGES;
      if (asked >= STAGES) await(empty(shared, stage), asked / STAGES - 1);
      ask_weights(args, shared, of, first + i, stage);
      ask_rows(args, shared, of, first + i, stage);
    }
  }
}
// A thread's sums are those of lines `lane / 4` and 8 more of its warp's 16 of the left operand, for
// two of each eight lines of the right one. `done`: runs before these.
__device__ __forceinline__ void multiply_runs(unsigned shared, int group, int done, int count, float (&sums)[OWN]) {
  for (int i = done; i < done + count; ++i) {
    const unsigned stage = shared + i % STAGES * STAGE_BYTES;
    await(full(shared, i % STAGES), i / STAGES);
    begin_products();
    #pragma unroll
    for (int k = 0; k < RUN / 16; ++k) {
      multiply_wide<1>(sums, matrix_at(stage + group * (64 * 128) + k * 32), matrix_at(stage + LEFT_BYTES + k * 32));
    }
    end_products();
    if (i == done) continue;
    await_products<1>(sums);
    if (lane_of_thread() == 0) arrive(empty(shared, (i - 1) % STAGES));
  }
  await_products<0>(sums);
  if (lane_of_thread() == 0) arrive(empty(shared, (done + count - 1) % STAGES));
}
// Adds up what the blocks that share columns have summed, in the last of them; false in the others.
__device__ __forceinline__ bool add_splits(const Args& args, float (&sums)[OWN]) {
  float* words = args.workspace - (long)(gridDim.x - blockIdx.x) * (SPLITS - 1) * ROWS * GRAIN + threadIdx.x;
  if (blockIdx.y < SPLITS - 1) {
    #pragma unroll
    for (int i = 0; i < OWN; ++i) leave(words + (blockIdx.y * OWN + i) * MULTIPLIERS, sums[i]);
    return false;
  }
  float others[OWN];
  #pragma unroll
  for (int s = 0; s < SPLITS - 1; ++s) {
    float found[OWN];
    take([&](int i) { return words + (s * OWN + i) * MULTIPLIERS; }, found);
    #pragma unroll
    for (int i = 0; i < OWN; ++i) others[i] = (s == 0 ? 0.0f : others[i]) + found[i];
  }
  #pragma unroll
  for (int i = 0; i < OWN; ++i) sums[i] += others[i];
  return true;
}
)";

// Rows are left: a warp ends its 16 by itself, CHUNK columns of them at a time.
constexpr std::string_view kEndOfRows = R"(
__device__ __forceinline__ void end_tile(const Args& args, const Tile& of, int warp, float* parts, const float (&sums)[OWN]) {
  const int lane = lane_of_thread();
  const long first = of.row + warp * 16, left = rows_of(args) - first;
  float* const own = parts + warp * (16 * PARTS_PITCH);
  if (left <= 0) return;
  #pragma unroll
  for (int begin = 0; begin < GRAIN; begin += CHUNK) {
    __syncwarp();  // all have read
    #pragma unroll
    for (int i = 0; i < CHUNK / 4; ++i) {  // of which two are neighbours
      float* const at = own + (lane / 4 + i % 2 * 8) * PARTS_PITCH + i / 2 * 8 + lane % 4 * 2;
      *(float2*)at = make_float2(sums[begin / 2 + i * 2], sums[begin / 2 + i * 2 + 1]);
    }
    __syncwarp();
    end_rows(args, first, left < 16 ? (int)left : 16, of.column + begin, own, lane);
  }
}
)";
// Weights are left: the warpgroup ends all of the block's one tile.
constexpr std::string_view kEndOfColumns = R"(
__device__ __forceinline__ void end_tile(const Args& args, const Tile& of, int warp, float* parts, const float (&sums)[OWN]) {
  const int lane = lane_of_thread();
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int row = i / 4 * 8 + lane % 4 * 2 + i % 2;
    parts[row * PARTS_PITCH + warp * 16 + lane / 4 + i % 4 / 2 * 8] = sums[i];
  }
  asm volatile("barrier.sync.aligned %0, %1;" :: "n"(1), "n"((int)SHARERS) : "memory");
  const long left = rows_of(args) - of.row;
  end_rows(args, of.row, left < ROWS ? (int)left : (int)ROWS, of.column, parts, (int)threadIdx.x);
}
)";
// SHARERS threads end CHUNK columns of some rows: a unit at a time, or ROUND columns by some lanes.
constexpr std::string_view kEndUnits = R"(
__device__ __forceinline__ void end_rows(const Args& args, long first, int rows, long column, const float* part, int thread) {
  enum { EACH = CHUNK / 8, TURNS = ((ROWS_LEFT ? 16 : ROWS) * EACH + SHARERS - 1) / SHARERS };
  #pragma unroll
  for (int i = 0; i < TURNS; ++i) {
    const int unit = thread + i * SHARERS, row = unit / EACH, at = unit % EACH * 8;
    if (row >= rows) continue;
    float products[8];
    load_unit(part + row * PARTS_PITCH + at, products);
    finish_unit(args, first + row, column + at, products);
  }
}
)";
constexpr std::string_view kEndColumns = R"(
__device__ __forceinline__ void end_rows(const Args& args, long first, int rows, long column, const float* part, int thread) {
  for (int task = thread / EPILOGUE_LANES; task < rows * (CHUNK / ROUND); task += SHARERS / EPILOGUE_LANES) {
    const int row = task / (CHUNK / ROUND), at = task % (CHUNK / ROUND) * ROUND;
    epilogue_row(args, first + row, column + at, ROUND, part + row * PARTS_PITCH + at);
  }
}
)";
constexpr std::string_view kMappedEntry =
    R"(extern "C" __global__ void __launch_bounds__(THREADS, TOGETHER) assay_run(const __grid_constant__ Args args) {
  const unsigned begin = (unsigned)__cvta_generic_to_shared(ring), shared = (begin + 1023) & ~1023u;
  let_next_begin();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(full(shared, stage), 1);
      make_barrier(empty(shared, stage), MULTIPLIERS / 32);
    }
    show_to_products();  // and to copies
  }
  __syncthreads();
  const int warp = __shfl_sync(~0u, warp_of_thread(), 0), group = warp / 4;
  const int first = (int)(RUNS * blockIdx.y / SPLITS), count = (int)(RUNS * (blockIdx.y + 1) / SPLITS) - first;
  if (warp >= MULTIPLIERS / 32) {
    if (threadIdx.x == MULTIPLIERS) ask_for_all(args, shared, first, count);
    else wait_for_kernels_ahead();
    return;
  }
  const int of_rows = row_tiles(args), tiles = of_rows * COLUMN_TILES;
  float* const parts = (float*)((unsigned char*)ring + (shared - begin) + PARTS_AT);
  int done = 0;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x, done += count) {
    float sums[OWN] = {};
    multiply_runs(shared, group, done, count, sums);
    wait_for_kernels_ahead();
    if (SPLITS > 1 && !add_splits(args, sums)) return;
    end_tile(args, tile_of(number, of_rows), warp, parts, sums);
  }
}
)";

}  // namespace

std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product) {
  const int64_t pitch = Packing::padded_inputs(product.inputs);
  const int64_t parts_at = cuda_warpgroup_ring_bytes(shape);
  return fmt::format(
      "\nenum {{ GRAIN = {}, COLUMN_TILES = {}, RUN = {}, RUNS = {}, STAGES = {}, SPLITS = {}, "
      "TOGETHER = {}, ROUND = {}, CHUNK = {},\n       ROWS_LEFT = {}, SHARERS = ROWS_LEFT ? 32 : "
      "128, PARTS_PITCH = {}, PARTS_AT = {}, BARRIERS_AT = {}, X_AT = {}, WHOLE = 1,\n       "
      "LEFT = ROWS_LEFT ? ROWS : GRAIN, LEFT_BYTES = LEFT * 128, MULTIPLIERS = LEFT * 2, "
      "STAGE_BYTES = (ROWS + GRAIN) * 128,\n       OWN = (ROWS_LEFT ? GRAIN : ROWS) / 2 }};\n",
      shape.columns, shape.blocks, kCudaTensorRun, pitch / kCudaTensorRun, shape.laps, shape.splits,
      shape.together, cuda_task_columns(shape.rows), shape.round, shape.rows_left ? 1 : 0,
      cuda_warpgroup_pitch(shape), parts_at, parts_at + cuda_warpgroup_parts_bytes(shape),
      kCudaCounters);
}

std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape) {
  const bool f16 = kernel.buffers[product.weight].dtype == DType::kF16;
  const bool units = unit_epilogue_blocks(kernel, product).has_value();
  return (library_product(kernel, product).prologue ? print_library_prologue(kernel, product)
                                                    : "") +
         (units ? unit_functions_text(kernel, product) + unit_finish_text(kernel, product) : "") +
         cuda_barrier_text() +
         cuda_warpgroup_product_text(f16 ? "f16" : "bf16",
                                     shape.rows_left ? shape.columns : shape.rows) +
         cuda_stages_text() + std::string(kMappedRun) +
         std::string(units ? kEndUnits : kEndColumns) +
         std::string(shape.rows_left ? kEndOfRows : kEndOfColumns) + std::string(kMappedEntry);
}

std::vector<CudaMatrix> cuda_warpgroup_matrices(const Kernel& kernel, const ProductKernel& product,
                                                const CudaProductShape& shape, int64_t rows) {
  const int64_t pitch = Packing::padded_inputs(product.inputs);
  const bool prologue = library_product(kernel, product).prologue;
  return {{.buffer = product.weight,
           .lines = packed_columns(product.packing),
           .pitch = pitch,
           .box_lines = shape.columns},
          {.buffer = prologue ? std::nullopt : std::optional(product.x),
           .workspace_at = kCudaCounters,
           .lines = rows,
           .pitch = pitch,
           .box_lines = std::min(ceil_div(rows, kProductRows) * kProductRows, shape.rows)}};
}

}  // namespace assay::engine
