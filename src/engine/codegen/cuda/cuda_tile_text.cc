// Products of many rows with weights in blocks on GPUs that multiply by warpgroups (sm_90a): a
// library would need the weights decoded in memory, which takes as long as half of the product.
#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

// Rows as they are multiplied, [tile of ROWS][64 inputs][row of the tile]: lines of 128 bytes in
// wgmma's swizzle, in which the 16 bytes `piece` of line r are at piece ^ r % 8. A lane of the left
// operand's fragments has four of each 16 inputs: the first and the third of all fours come first.
// Rows become 2^16 times x, because weights are 2^-16 of their values: an x of 2^112 or more
// becomes infinite.
constexpr std::string_view kRows = R"(
__device__ __forceinline__ void put_four(void* rows, int runs, long row, int at, const float* x) {
  const long line = (row / ROWS * runs + at / RUN) * ROWS + row % ROWS;
  unsigned* const to = (unsigned*)rows + line * 32 + at % 16 / 4;
  const int piece = at % RUN / 16 * 2, swizzle = (int)(row % 8);
  to[(piece ^ swizzle) * 4] = pack(x[0] * 65536.0f, x[2] * 65536.0f);
  to[((piece + 1) ^ swizzle) * 4] = pack(x[1] * 65536.0f, x[3] * 65536.0f);
}
__device__ __forceinline__ void put_four(const Args& args, long row, int at, const float (&x)[4]) {
  put_four(args.workspace + X_AT, RUNS, row, at, x);
}
// An epilogue's values from element `at` of a row of the product behind.
template <int N>
__device__ __forceinline__ void store_tiled(void* rows, long width, long row, long at, const float (&x)[N]) {
  #pragma unroll
  for (int i = 0; i < N; i += 4) put_four(rows, (int)(width / RUN), row, (int)at + i, x + i);
}
template <typename T>
__device__ __forceinline__ void put_row(const Args& args, long row, const T* from) {
  #pragma unroll 4
  for (int at = threadIdx.x * 4; at < INPUTS; at += THREADS * 4) {
    float x[4];
    load_unit(from + at, x);
    put_four(args, row, at, x);
  }
}
)";

// Sixteen warps, four warpgroups, have 16 columns each, whose weights they take apart in registers,
// 32 inputs at a time, while the products of those before run. A stage of the ring has 128 inputs
// of the rows, which the first warp asks for once all have multiplied what was there, and a slot of
// each warp, which it asks for itself, at first before the kernels ahead have ended. A further warp
// for that would halve everybody's registers on one of the multiprocessor's four parts.
// All blocks have equal shares of all tiles' slots, one behind the other: a tile that falls to
// several is summed by the one that comes last.
constexpr std::string_view kTileSizes = R"(
enum { ROWS_BYTES = ROWS * 256, STAGE_BYTES = (ROWS_BYTES + WARPS * SLOT_BYTES + 1023) / 1024 * 1024,
       SUMS_AT = STAGES * STAGE_BYTES, BARRIERS_AT = SUMS_AT + 16 * PART_PITCH * 4, OWN = ROWS / 2, PART = OWN * THREADS };
)";

constexpr std::string_view kTileRun = R"(
// Codes become values by one instruction for two. In the lower bits of bf16 a byte is 2^-133 times its number, so that factors
// of a value's 2^-16 are large: one of 2^(11 + CODE_SHIFT) or more is infinite, and its column's sums are NaN. A factor and an
// offset are rounded to bf16 once for all of their codes, and a value once more. A zero is subtracted before the factor
// multiplies, which is exact.
__device__ __forceinline__ unsigned times_and_more(unsigned a, unsigned b, unsigned c) {
  unsigned both;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
  return both;
}
enum { UNIT = 127 + 117 - CODE_SHIFT };  // biased exponent of the factor that makes 2^-16 of a code of its byte
// A pair of a column's cell: its factor and its offset, or its factor and its zero, or the factors of its halves.
__device__ __forceinline__ unsigned cell_line(const char* slot, int cell, int column) {
  CellScales scales;
  cell_scales(slot, cell, column, scales);
  if (ZEROS) return pack(scales.factor[0], scales.zero * (-1.0f / 65536));
  const float unit = __uint_as_float((unsigned)UNIT << 23), factor = scales.factor[0] * unit;
  if (HALVES == 2) return pack(factor, scales.factor[HALVES - 1] * unit);
  return pack(factor, OFFSETS ? scales.offset[0] * (1.0f / 65536) : factor * -__uint_as_float(1u << 23));
}
// One of a word's halves twice. Told so, the assembler reads the half where it is used, without an instruction that copies it.
__device__ __forceinline__ unsigned twice(unsigned word, bool upper) {
  unsigned short halves[2];
  unsigned both;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(halves[0]), "=h"(halves[1]) : "r"(word));
  asm("mov.b32 %0, {%1, %1};" : "=r"(both) : "h"(halves[upper]));
  return both;
}
// The first and the third byte as numbers of their 16 bits. Bytes with a sign get 128 more, by the same instruction.
__device__ __forceinline__ unsigned byte_numbers(unsigned bytes) {
  if (OFFSETS) return bytes & 0x00ff00ffu;
  unsigned two;
  // The last operand is the table of (a ^ b) & c.
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(two) : "r"(bytes), "r"(0x00800080u), "r"(0x00ff00ffu), "n"((0xf0 ^ 0xcc) & 0xaa));
  return two;
}
// The words of the left operand of 16 of a cell's inputs, the first or the others, of columns lane / 4 and 8 more, in the order
// of the rows.
__device__ __forceinline__ void half_values(const CellCodes& codes, const unsigned (&lines)[2], int half, unsigned (&values)[4]) {
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned line = lines[i % 2], factor = twice(line, HALVES == 2 && half == 1);
    const unsigned offset = HALVES == 2 ? times_and_more(factor, 0x80808080u, 0x80008000u) : twice(line, true);
    const unsigned bytes = codes.of[half * 2 + i % 2], two = byte_numbers(i < 2 ? bytes : bytes >> 8);
    values[i] = ZEROS ? times_and_more(times_and_more(two, UNIT * 0x00800080u, offset), factor, 0x80008000u) : times_and_more(two, factor, offset);
  }
}

__device__ __forceinline__ void ask_bulk(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ char* memory_at(unsigned shared) { return (char*)ring + (shared - (unsigned)__cvta_generic_to_shared(ring)); }
// The tiles of a run, those of the same columns side by side, so that the cache has their weights.
__device__ __forceinline__ int row_tiles(const Args& args) { return (int)((rows_of(args) + ROWS - 1) / ROWS); }
__device__ __forceinline__ long all_slots(int of_rows) { return (long)of_rows * COLUMN_TILES * SLOTS; }
__device__ __forceinline__ int begin_of(int of_rows, int block) { return (int)(all_slots(of_rows) * block / (int)gridDim.x); }
__device__ __forceinline__ int block_of(int of_rows, int slot) { return (int)(((long)(slot + 1) * (int)gridDim.x - 1) / all_slots(of_rows)); }
// A slot of a tile of rows and columns.
struct Place { int rows, columns, slot; };
__device__ __forceinline__ Place place_of(int of_rows, int at) {
  const Place place = {at / SLOTS % of_rows, at / SLOTS / of_rows, at % SLOTS};
  return place;
}
// A slot's rows are two runs of 64 inputs; those of a tile's last slot may be one.
__device__ __forceinline__ int rows_bytes(bool of_last) { return RUNS % 2 == 1 && of_last ? ROWS_BYTES / 2 : (int)ROWS_BYTES; }

// One thread of each warp asks for the slot, of the tile that ends before `behind`, at the place of the warp's weights, if it has
// columns there.
struct Asking {
  int slot, behind;
  const char* weights;
  bool there;
};
// The thread of the first warp announces the bytes of the rows too. A group of columns behind the last keeps what its place had
// before: nobody reads its sums.
__device__ __forceinline__ void ask_weights(const Args& args, unsigned shared, int of_rows, int warp, int stage, Asking& next) {
  if (next.slot == next.behind) {
    const Place of = place_of(of_rows, next.slot);
    const int group = of.columns * WARPS + warp;
    next.there = COLUMNS % GRAIN == 0 || group < COLUMNS / 16;
    next.weights = (const char*)args.buffers[WEIGHT] + ((long)group * SLOTS + of.slot) * SLOT_BYTES;
    next.behind += SLOTS - of.slot;
  }
  const int of_rows_too = warp == 0 ? rows_bytes(next.slot + 1 == next.behind) : 0;
  arrive_expecting(full(shared, stage), (next.there ? (int)SLOT_BYTES : 0) + of_rows_too);
  if (next.there) {
    ask_bulk(shared + stage * STAGE_BYTES + ROWS_BYTES + warp * SLOT_BYTES, next.weights, SLOT_BYTES, full(shared, stage));
  }
  ++next.slot, next.weights += SLOT_BYTES;
}
__device__ __forceinline__ void ask_rows(const Args& args, unsigned shared, const Place& of, int stage) {
  const char* const from = tiled_rows(args) + (long)(of.rows * RUNS + of.slot * 2) * (ROWS * 128);
  ask_bulk(shared + stage * STAGE_BYTES, from, rows_bytes(of.slot == SLOTS - 1), full(shared, stage));
}

// The block's slots, the stage of the next one, and how often that has been filled before. Weights are asked for STAGES slots
// ahead, and rows a slot less.
struct Ring { int begin, end, stage, turn; };
// Warps wait for their own instructions more than for the tensor cores. So what they need comes early: whether the next slot is
// there, a cell's codes while those before are taken apart, and the factors of all cells at a time.
__device__ __forceinline__ void multiply_slots(const Args& args, unsigned shared, int of_rows, int warp, int first,
                                               int last, Ring& at, Asking& asking, float (&sums)[OWN]) {
  unsigned words[2][2][4];
  bool there = has_come(full(shared, at.stage), at.turn);
  #pragma unroll 1
  for (int slot = first; slot < last; ++slot) {
    const int before = at.stage == 0 ? STAGES - 1 : at.stage - 1, behind = at.stage + 1 == STAGES ? 0 : at.stage + 1;
    if (!there) await(full(shared, at.stage), at.turn);
    const char* own = memory_at(shared) + at.stage * STAGE_BYTES + ROWS_BYTES + warp * SLOT_BYTES;
    const unsigned rows = matrix_word(shared + at.stage * STAGE_BYTES);
    const int lane = lane_of_thread();
    CellCodes codes[2];
    cell_codes(own, 0, lane, codes[0]);
    unsigned own_lines[2], lines[4][2];  // its own are of cell lane % 4
    #pragma unroll
    for (int c = 0; c < 2; ++c) own_lines[c] = cell_line(own, lane % 4, lane / 4 + c * 8);
    #pragma unroll
    for (int i = 0; i < 8; ++i) lines[i / 2][i % 2] = __shfl_sync(~0u, own_lines[i % 2], lane / 4 * 4 + i / 2);
    #pragma unroll
    for (int cell = 0; cell < 4; ++cell) {
      if (RUNS % 2 == 1 && cell == 2 && slot % SLOTS == SLOTS - 1) break;
      if (cell < 3) cell_codes(own, cell + 1, lane, codes[(cell + 1) % 2]);
      unsigned (&left)[2][4] = words[cell % 2];
      #pragma unroll
      for (int half = 0; half < 2; ++half) half_values(codes[cell % 2], lines[cell], half, left[half]);
      begin_products();
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned (&a)[4] = left[half];
        multiply_weights(sums, a[0], a[1], a[2], a[3], matrix_of(rows + (cell / 2 * (ROWS * 128) + cell % 2 * 64 + half * 32) / 16));
      }
      end_products();
      await_products<1>(sums);  // the words of the cell before are free
      if (cell != 1) continue;
      there = has_come(full(shared, behind), behind == 0 ? at.turn + 1 : at.turn);
      if (slot > at.begin && lane == 0) arrive(empty(shared, before));
    }
    __syncwarp();  // all lanes have read
    // By now all but late warps have multiplied the stage of the slot before.
    const int next = slot + STAGES - 1;
    if (slot > at.begin && next < at.end && threadIdx.x == 0) {
      await(empty(shared, before), at.stage == 0 ? at.turn - 1 : at.turn);
      ask_rows(args, shared, place_of(of_rows, next), before);
    }
    if (next + 1 < at.end && lane == 0) ask_weights(args, shared, of_rows, warp, at.stage, asking);
    if (behind == 0) ++at.turn;
    at.stage = behind;
  }
  await_products<0>(sums);
}

// Blocks that share a tile count themselves when they have left their parts; whoever comes last adds the parts up, in the order
// of their blocks, and ends the tile. A block whose share goes on behind the tile counts itself by one warp while the others go
// on, and ends the tile, if it was the last, when it has done all else. One whose share ends with the first part of a tile
// leaves no part if all others have come.
struct Sharers {
  int tile, first, last;
};
__device__ __forceinline__ Sharers sharers_of(int of_rows, const Place& of) {
  const int tile = of.columns * of_rows + of.rows;
  const Sharers sharers = {tile, block_of(of_rows, tile * SLOTS), block_of(of_rows, tile * SLOTS + SLOTS - 1)};
  return sharers;
}
__device__ __forceinline__ float* part_of(const Args& args, int of_rows, const Sharers& of, int block) {
  const int second = begin_of(of_rows, block) < of.tile * SLOTS ? 1 : 0;  // of the two that a block may leave
  return args.workspace + X_AT + (long)of_rows * ROWS * (PITCH / 2) + (block * 2 + second) * (long)PART + threadIdx.x;
}
// Adds what blocks have left, from `first` on.
__device__ __forceinline__ void add_parts(const Args& args, int of_rows, const Sharers& of, int first, float (&sums)[OWN]) {
  #pragma unroll 1
  for (int block = first; block <= of.last; ++block) {
    const float* const from = part_of(args, of_rows, of, block);
    #pragma unroll
    for (int i = 0; i < OWN; ++i) sums[i] += __ldcg(from + i * THREADS);
  }
}
// True if the block has the whole tile's sums now and ends it. `counted`: how many were counted before this one, if it goes on.
__device__ __forceinline__ bool has_all(const Args& args, int of_rows, const Sharers& of, bool goes_on, int& counted, float (&sums)[OWN]) {
  __shared__ bool all_there;
  const int others = of.last - of.first, block = blockIdx.x;
  int* const counter = (int*)args.workspace + of.tile;
  if (block == of.first) {
    __syncthreads();
    if (threadIdx.x == 0) {
      all_there = count_blocks(counter, 0) == others;
      if (all_there) *counter = 0;
    }
    __syncthreads();
    if (all_there) {
      add_parts(args, of_rows, of, of.first + 1, sums);
      return true;
    }
  }
  float* const own = part_of(args, of_rows, of, block);
  #pragma unroll
  for (int i = 0; i < OWN; ++i) own[i * THREADS] = sums[i];
  if (goes_on) {
    __syncthreads();
    if (threadIdx.x == 0) counted = count_blocks(counter, 1);
    return false;
  }
  if (!is_last(counter, others + 1)) return false;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) sums[i] = 0.0f;
  add_parts(args, of_rows, of, of.first, sums);
  return true;
}
// The block calls it, and ends 16 rows at a time, a warp one of them.
__device__ __forceinline__ void finish_tile(const Args& args, const Place& of, float* part, int warp, const float (&sums)[OWN]) {
  const int lane = lane_of_thread();
  const long first = (long)of.rows * ROWS, left = rows_of(args) - first;
  #pragma unroll
  for (int at = 0; at < ROWS; at += 16) {
    if (at >= left) break;
    __syncthreads();  // all have read
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      part[(i / 4 * 8 + lane % 4 * 2 + i % 2) * PART_PITCH + warp * 16 + lane / 4 + i % 4 / 2 * 8] = sums[at / 2 + i];
    }
    __syncthreads();
    if (at + warp < left) finish_row(args, first + at + warp, (long)of.columns * GRAIN, part + warp * PART_PITCH);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_run(const Args args) {
  const unsigned begin_of_ring = (unsigned)__cvta_generic_to_shared(ring), shared = (begin_of_ring + 1023) & ~1023u;
  let_next_begin();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(full(shared, stage), WARPS);
      make_barrier(empty(shared, stage), WARPS);
    }
    show_to_products();  // and to copies
  }
  __syncthreads();
  const int warp = __shfl_sync(~0u, warp_of_thread(), 0);
  const int of_rows = row_tiles(args);
  Ring ring_at = {begin_of(of_rows, blockIdx.x), begin_of(of_rows, blockIdx.x + 1), 0, 0};
  const int ahead = ring_at.end - ring_at.begin < STAGES ? ring_at.end - ring_at.begin : (int)STAGES;
  Asking asking = {ring_at.begin, ring_at.begin, nullptr, false};
  for (int i = 0; i < ahead && lane_of_thread() == 0; ++i) ask_weights(args, shared, of_rows, warp, i, asking);
  wait_for_kernels_ahead();
  for (int i = 0; i < ahead && threadIdx.x == 0; ++i) ask_rows(args, shared, place_of(of_rows, ring_at.begin + i), i);
  __shared__ int counted;  // before this block, of the tile that its share begins in
  if (threadIdx.x == 0) counted = -1;
  #pragma unroll 1
  for (int at = ring_at.begin;;) {
    const bool more = at < ring_at.end;
    float sums[OWN] = {};
    if (more) {
      const int behind = (at / SLOTS + 1) * SLOTS, last = behind < ring_at.end ? behind : ring_at.end;
      multiply_slots(args, shared, of_rows, warp, at, last, ring_at, asking, sums);
      at = last;
    } else {
      __syncthreads();
    }
    const Place of = place_of(of_rows, more ? at - 1 : ring_at.begin);
    const Sharers sharers = sharers_of(of_rows, of);
    const int others = sharers.last - sharers.first;
    bool ends = true;
    if (more && others > 0) ends = has_all(args, of_rows, sharers, at < ring_at.end, counted, sums);
    if (!more) {
      if (counted != others) break;
      if (threadIdx.x == 0) ((int*)args.workspace)[sharers.tile] = 0;
      add_parts(args, of_rows, sharers, sharers.first, sums);
    }
    if (ends) finish_tile(args, of, (float*)(memory_at(shared) + SUMS_AT), warp, sums);
    if (!more) break;
  }
}
)";

// A warp ends a row, a unit a lane.
constexpr std::string_view kFinishUnits = R"(
__device__ __forceinline__ void finish_row(const Args& args, long row, long column, const float* part) {
  const int at = lane_of_thread() * 8;
  if (column + at >= COLUMNS) return;
  HeldUnit held;
  hold_unit(args, row, column + at, held);
  float products[8];
  load_unit(part + at, products);
  finish_unit(args, row, column + at, products, held);
}
)";
// The same, some columns of one segment at a time.
constexpr std::string_view kFinishColumns = R"(
__device__ __forceinline__ void finish_row(const Args& args, long row, long column, const float* part) {{
  for (int at = 0; at < GRAIN && column + at < COLUMNS; at += {count}) epilogue_row(args, row, column + at, {count}, part + at);
}}
)";

std::string finish_text(const Kernel& kernel, const ProductKernel& product,
                        const CudaProductShape& shape) {
  if (unit_epilogue_blocks(kernel, product)) {
    return unit_finish_text(kernel, product) + std::string(kFinishUnits);
  }
  const int64_t count = std::gcd(shape.columns, library_epilogue_columns(product.packing));
  return "\nenum { EPILOGUE_LANES = 32 };\n"
         "__device__ __forceinline__ int epilogue_lane() { return lane_of_thread(); }\n" +
         cuda_epilogue_row(kernel, product, true) +
         fmt::format(fmt::runtime(kFinishColumns), fmt::arg("count", count));
}

}  // namespace

std::string cuda_tile_constants(const CudaProductShape& shape, const ProductKernel& product) {
  return fmt::format(
             "\nenum {{ COLUMNS = {}, GRAIN = {}, RUN = {}, RUNS = PITCH / RUN, STAGES = {}, "
             "PART_PITCH = GRAIN + 4, COUNTERS = {}, X_AT = COUNTERS, COLUMN_TILES = {}, WHOLE = 1 "
             "}};\n",
             packed_columns(product.packing), shape.columns, kCudaTensorRun, shape.laps,
             kCudaCounters, shape.blocks) +
         cuda_tensor_text("bf16");
}

std::string cuda_tile_run(const Kernel& kernel, const ProductKernel& product,
                          const CudaProductShape& shape) {
  return unit_functions_text(kernel, product) + std::string(kRows) +
         (product.tiled_input ? "" : print_library_prologue(kernel, product)) +
         fmt::format(
             "\n__device__ __forceinline__ const char* tiled_rows(const Args& args) {{\n"
             "  return (const char*){};\n}}\n",
             product.tiled_input ? fmt::format("args.buffers[{}]", product.x)
                                 : std::string("(args.workspace + X_AT)")) +
         finish_text(kernel, product, shape) + cuda_barrier_text() +
         cuda_warpgroup_product_text("bf16", shape.rows) +
         cuda_held_product_text("bf16", shape.rows, false) + std::string(kTileSizes) +
         cuda_stages_text() + std::string(kTileRun);
}

}  // namespace assay::engine
