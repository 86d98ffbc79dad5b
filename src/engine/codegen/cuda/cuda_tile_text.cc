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
__device__ __forceinline__ void put_four(const Args& args, long row, int at, const float (&x)[4]) {
  const long line = (row / ROWS * RUNS + at / RUN) * ROWS + row % ROWS;
  unsigned* const to = (unsigned*)(args.workspace + X_AT) + line * 32 + at % 16 / 4;
  const int piece = at % RUN / 16 * 2, swizzle = (int)(row % 8);
  to[(piece ^ swizzle) * 4] = pack(x[0] * 65536.0f, x[2] * 65536.0f);
  to[((piece + 1) ^ swizzle) * 4] = pack(x[1] * 65536.0f, x[3] * 65536.0f);
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
// 16 inputs at a time, while the products of those before run. A stage of the ring has 128 inputs
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
// The words of the left operand of 16 of a cell's inputs, the first or the others, of columns lane / 4 and 8 more, in the order
// of the rows.
__device__ __forceinline__ void half_values(const CellCodes& codes, const unsigned (&lines)[2], int half, unsigned (&values)[4]) {
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned line = lines[i % 2], factor = __byte_perm(line, line, HALVES == 2 && half == 1 ? 0x3232 : 0x1010);
    const unsigned offset = HALVES == 2 ? times_and_more(factor, 0x80808080u, 0x80008000u) : __byte_perm(line, line, 0x3232);
    const unsigned bytes = OFFSETS ? codes.of[half * 2 + i % 2] : codes.of[half * 2 + i % 2] ^ 0x80808080u;
    const unsigned two = (i < 2 ? bytes : bytes >> 8) & 0x00ff00ffu;
    values[i] = ZEROS ? times_and_more(times_and_more(two, UNIT * 0x00800080u, offset), factor, 0x80008000u) : times_and_more(two, factor, offset);
  }
}

__device__ __forceinline__ void arrive_expecting(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void ask_bulk(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
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
__device__ __forceinline__ void go_on(Place& place, int of_rows) {
  if (++place.slot < SLOTS) return;
  place.slot = 0;
  if (++place.rows == of_rows) place.rows = 0, ++place.columns;
}
__device__ __forceinline__ int rows_bytes(const Place& of) { return RUNS % 2 == 1 && of.slot == SLOTS - 1 ? ROWS_BYTES / 2 : (int)ROWS_BYTES; }

// One thread of each warp calls it; that of the first warp announces the bytes of the rows too. A group of columns behind the
// last keeps what its place had before: nobody reads its sums.
__device__ __forceinline__ void ask_weights(const Args& args, unsigned shared, const Place& of, int stage, int warp) {
  const int group = of.columns * WARPS + warp;
  const bool there = group < COLUMNS / 16;
  arrive_expecting(full(shared, stage), (there ? (int)SLOT_BYTES : 0) + (warp == 0 ? rows_bytes(of) : 0));
  if (!there) return;
  ask_bulk(shared + stage * STAGE_BYTES + ROWS_BYTES + warp * SLOT_BYTES,
           (const char*)args.buffers[WEIGHT] + ((long)group * SLOTS + of.slot) * SLOT_BYTES, SLOT_BYTES, full(shared, stage));
}
__device__ __forceinline__ void ask_rows(const Args& args, unsigned shared, const Place& of, int stage) {
  const char* const rows = (const char*)(args.workspace + X_AT) + of.rows * ((long)RUNS * ROWS * 128);
  ask_bulk(shared + stage * STAGE_BYTES, rows + (long)of.slot * ROWS_BYTES, rows_bytes(of), full(shared, stage));
}

// A warp's place: its stage and how often that has been filled before; the stage of the slot before, which waits for its next
// rows, or -1; how many slots of weights it has yet to ask for; and the next slots of weights and of rows to ask for.
struct Ring {
  int stage, turn, before, left;
  Place weights, rows;
};
__device__ __forceinline__ void ask_next_rows(const Args& args, unsigned shared, int of_rows, Ring& at, int turn_before) {
  if (at.left >= 0 && threadIdx.x == 0) {
    await(empty(shared, at.before), turn_before);
    ask_rows(args, shared, at.rows, at.before);
  }
  go_on(at.rows, of_rows);
}
__device__ __forceinline__ void multiply_slots(const Args& args, const char* memory, unsigned shared, int of_rows, int warp, int first,
                                               int end, Ring& at, float (&sums)[OWN]) {
  unsigned words[4][4];
  #pragma unroll 1
  for (int slot = first; slot < end; ++slot) {
    await(full(shared, at.stage), at.turn);
    const char* own = memory + at.stage * STAGE_BYTES + ROWS_BYTES + warp * SLOT_BYTES;
    const unsigned long rows = matrix_at(shared + at.stage * STAGE_BYTES);
    unsigned own_lines[2];  // of cell lane % 4
    #pragma unroll
    for (int c = 0; c < 2; ++c) own_lines[c] = cell_line(own, lane_of_thread() % 4, lane_of_thread() / 4 + c * 8);
    #pragma unroll
    for (int cell = 0; cell < 4; ++cell) {
      if (RUNS % 2 == 1 && cell == 2 && slot == SLOTS - 1) break;
      CellCodes codes;
      cell_codes(own, cell, lane_of_thread(), codes);
      unsigned lines[2];
      #pragma unroll
      for (int c = 0; c < 2; ++c) lines[c] = __shfl_sync(~0u, own_lines[c], lane_of_thread() / 4 * 4 + cell);
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned (&left)[4] = words[cell % 2 * 2 + half];
        half_values(codes, lines, half, left);
        begin_products();
        multiply_weights(sums, left[0], left[1], left[2], left[3], rows + (cell / 2 * (ROWS * 128) + cell % 2 * 64 + half * 32) / 16);
        end_products();
        await_products<3>(sums);  // the words of the product before these are free
      }
      if (cell == 1 && at.before >= 0 && lane_of_thread() == 0) arrive(empty(shared, at.before));
    }
    __syncwarp();  // all lanes have read
    // By now all but late warps have multiplied the stage of the slot before.
    if (at.before >= 0) ask_next_rows(args, shared, of_rows, at, at.stage == 0 ? at.turn - 1 : at.turn);
    if (--at.left >= 0 && lane_of_thread() == 0) ask_weights(args, shared, at.weights, at.stage, warp);
    go_on(at.weights, of_rows);
    at.before = at.stage;
    if (++at.stage == STAGES) at.stage = 0, ++at.turn;
  }
  await_products<0>(sums);
}

// Adds up what the blocks that share the tile have summed, in the block that comes last; false in the others.
__device__ __forceinline__ bool add_parts(const Args& args, int of_rows, const Place& of, float (&sums)[OWN]) {
  const int tile = of.columns * of_rows + of.rows, begin = tile * SLOTS, block = blockIdx.x;
  const int first = block_of(of_rows, begin), last = block_of(of_rows, begin + SLOTS - 1);
  if (first == last) return true;
  float* const all = args.workspace + X_AT + (long)of_rows * ROWS * (PITCH / 2) + threadIdx.x;
  const auto part_of = [&](int other) { return all + (other * 2 + (begin_of(of_rows, other) < begin ? 1 : 0)) * (long)PART; };
  float* const own = part_of(block);
  #pragma unroll
  for (int i = 0; i < OWN; ++i) own[i * THREADS] = sums[i];
  if (!is_last((int*)args.workspace + tile, last - first + 1)) return false;
  // Two parts give one sum in either order; more are added in theirs, whoever does it.
  const bool in_order = last - first > 1;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) sums[i] = in_order ? 0.0f : sums[i];
  #pragma unroll 1
  for (int other = first; other <= last; ++other) {
    if (!in_order && other == block) continue;
    const float* from = part_of(other);
    #pragma unroll
    for (int i = 0; i < OWN; ++i) sums[i] += __ldcg(from + i * THREADS);
  }
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
  char* const memory = (char*)ring + (shared - begin_of_ring);
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
  const int begin = begin_of(of_rows, blockIdx.x), end = begin_of(of_rows, blockIdx.x + 1);
  Ring ring_at = {0, 0, -1, end - begin, place_of(of_rows, begin), place_of(of_rows, begin)};
  for (; ring_at.stage < STAGES && ring_at.left > 0; ++ring_at.stage, --ring_at.left) {
    if (lane_of_thread() == 0) ask_weights(args, shared, ring_at.weights, ring_at.stage, warp);
    go_on(ring_at.weights, of_rows);
  }
  wait_for_kernels_ahead();
  for (int stage = 0; stage < ring_at.stage; ++stage) {
    if (threadIdx.x == 0) ask_rows(args, shared, ring_at.rows, stage);
    go_on(ring_at.rows, of_rows);
  }
  ring_at.stage = 0;
  #pragma unroll 1
  for (int at = begin; at < end;) {
    const Place of = place_of(of_rows, at);
    const int left = end - at, last = SLOTS - of.slot < left ? (int)SLOTS : of.slot + left;
    float sums[OWN] = {};
    multiply_slots(args, memory, shared, of_rows, warp, of.slot, last, ring_at, sums);
    if (add_parts(args, of_rows, of, sums)) finish_tile(args, of, (float*)(memory + SUMS_AT), warp, sums);
    at += last - of.slot;
  }
}
)";

// A warp ends a row, a unit a lane.
constexpr std::string_view kFinishUnits = R"(
__device__ __forceinline__ void finish_row(const Args& args, long row, long column, const float* part) {
  const int at = lane_of_thread() * 8;
  if (column + at >= COLUMNS) return;
  float products[8];
  load_unit(part + at, products);
  finish_unit(args, row, column + at, products);
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
             tile_count(product.packing) * product.packing.tile, shape.columns, kCudaTensorRun,
             shape.laps, kCudaCounters, shape.blocks) +
         cuda_tensor_text("bf16");
}

std::string cuda_tile_run(const Kernel& kernel, const ProductKernel& product,
                          const CudaProductShape& shape) {
  return unit_functions_text(kernel, product) + std::string(kRows) +
         print_library_prologue(kernel, product) + finish_text(kernel, product, shape) +
         cuda_barrier_text() + cuda_warpgroup_product_text("bf16", shape.rows) +
         cuda_held_product_text("bf16", shape.rows, false) + std::string(kTileSizes) +
         cuda_stages_text() + std::string(kTileRun);
}

}  // namespace assay::engine
