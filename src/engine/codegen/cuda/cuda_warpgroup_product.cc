// Rows are the left operand, weights the right one, and both come by tensor maps.
#include "engine/codegen/cuda/cuda_warpgroup_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

// A stage of the ring has 64 inputs of ROWS rows, then of GRAIN columns: lines of 128 bytes in
// wgmma's swizzle of 128 bytes, as the maps make them. A warpgroup multiplies 64 rows; the first
// thread behind them asks for both, for weights before the kernels ahead have ended, as many as the
// ring has room for.
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
  ask(shared + stage * STAGE_BYTES + LEFT_BYTES, args.weights, run * RUN, of.column, full(shared, stage));
}
__device__ __forceinline__ void ask_rows(const Args& args, unsigned shared, const Tile& of, int run, int stage) {
  ask(shared + stage * STAGE_BYTES, args.rows, run * RUN, of.row, full(shared, stage));
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
// A thread's sums are those of rows `lane / 4` and 8 more of its warp's 16, for two of each eight
// columns. A tile's first product doesn't add to what was there: sums that are set to zeros make the
// assembler wait for each product before the next.
template <int ADDS>
__device__ __forceinline__ void multiply_run(unsigned shared, int group, int i, float (&sums)[OWN]) {
  const unsigned stage = shared + i % STAGES * STAGE_BYTES;
  const unsigned left = stage + group * (64 * 128), right = stage + LEFT_BYTES;
  await(full(shared, i % STAGES), i / STAGES);
  begin_products();
  multiply_wide<ADDS>(sums, matrix_at(left), matrix_at(right));
  #pragma unroll
  for (int k = 1; k < RUN / 16; ++k) multiply_wide<1>(sums, matrix_at(left + k * 32), matrix_at(right + k * 32));
  end_products();
}
// `done`: runs before these.
__device__ __forceinline__ void multiply_runs(unsigned shared, int group, int done, int count, float (&sums)[OWN]) {
  multiply_run<0>(shared, group, done, sums);
  for (int i = done + 1; i < done + count; ++i) {
    multiply_run<1>(shared, group, i, sums);
    await_products<1>(sums);
    if (lane_of_thread() == 0) arrive(empty(shared, (i - 1) % STAGES));
  }
  await_products<0>(sums);
  if (lane_of_thread() == 0) arrive(empty(shared, (done + count - 1) % STAGES));
}
)";
// A block's tiles, one behind the other. A warp ends its 16 rows by itself, CHUNK columns of them
// at a time, a unit a lane.
constexpr std::string_view kTiles = R"(
__device__ __forceinline__ void end_rows(const Args& args, long first, int rows, long column, const float* part) {
  enum { EACH = CHUNK / 8, TURNS = 16 * EACH / 32 };
  HeldUnit held[TURNS];
  #pragma unroll
  for (int i = 0; i < TURNS; ++i) {
    const int unit = lane_of_thread() + i * 32, row = unit / EACH, at = unit % EACH * 8;
    if (row < rows) hold_unit(args, first + row, column + at, held[i]);
  }
  #pragma unroll
  for (int i = 0; i < TURNS; ++i) {
    const int unit = lane_of_thread() + i * 32, row = unit / EACH, at = unit % EACH * 8;
    if (row >= rows) continue;
    float products[8];
    load_unit(part + row * PARTS_PITCH + at, products);
    finish_unit(args, first + row, column + at, products, held[i]);
  }
}
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
    end_rows(args, first, left < 16 ? (int)left : 16, of.column + begin, own);
  }
}
__device__ __forceinline__ void multiply_tiles(const Args& args, unsigned shared, int warp, int count, float* parts) {
  const int of_rows = row_tiles(args), tiles = of_rows * COLUMN_TILES;
  int done = 0;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x, done += count) {
    float sums[OWN];
    multiply_runs(shared, warp / 4, done, count, sums);
    wait_for_kernels_ahead();
    end_tile(args, tile_of(number, of_rows), warp, parts, sums);
  }
}
)";

// The blocks of a cluster multiply parts of the inputs, and each ends ENDS of the tile's rows. A
// warp leaves its sums in the memory of the block that ends its rows, as it holds them: SLOT bytes
// for eight columns of its 16 rows. There they are added in the order of the parts.
constexpr std::string_view kParts = R"(
enum { ENDS = ROWS / SPLITS, SENDERS = ENDS / 16, WIDE = GRAIN / 8, PART_BYTES = SENDERS * WIDE * SLOT,
       MET_AT = BARRIERS_AT + STAGES * 16, TURNS = (ENDS * WIDE + MULTIPLIERS - 1) / MULTIPLIERS };
__device__ __forceinline__ unsigned in_block(unsigned address, int number) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(number));
  return there;
}
// All see each other's barriers. A release of all writes would be a fence of the whole GPU.
__device__ __forceinline__ void synchronize_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// A block's own barrier waits for what its parts send.
__device__ __forceinline__ void expect_sums(unsigned shared) {
  make_barrier(shared + MET_AT, 1);
  arrive_expecting(shared + MET_AT, SPLITS * SENDERS * WIDE * 512);
}
__device__ __forceinline__ void send_sums(unsigned shared, int warp, const float (&sums)[OWN]) {
  const int ender = warp / SENDERS;
  const unsigned met = in_block(shared + MET_AT, ender);
  const unsigned to = in_block(shared + PARTS_AT + blockIdx.y * PART_BYTES + warp % SENDERS * (WIDE * SLOT) + lane_of_thread() * 16, ender);
  #pragma unroll
  for (int i = 0; i < WIDE; ++i) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
                 :: "r"(to + i * SLOT), "f"(sums[i * 4]), "f"(sums[i * 4 + 1]), "f"(sums[i * 4 + 2]), "f"(sums[i * 4 + 3]), "r"(met) : "memory");
  }
}
// In the parts' order, into the first one's place.
__device__ __forceinline__ void add_sums(float* parts, int warp) {
  #pragma unroll
  for (int i = warp / SENDERS; i < WIDE; i += SPLITS) {
    float4* const at = (float4*)((char*)parts + (warp % SENDERS * WIDE + i) * SLOT) + lane_of_thread();
    float4 sum = *at;
    #pragma unroll
    for (int part = 1; part < SPLITS; ++part) {
      const float4 one = at[part * (PART_BYTES / 16)];
      sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
    }
    *at = sum;
  }
  asm volatile("barrier.sync.aligned %0, %1;" :: "n"(1), "n"((int)MULTIPLIERS) : "memory");
}
struct OwnUnit {
  int row, at;  // in the block's rows, and the tile's columns
  bool there;
};
__device__ __forceinline__ OwnUnit own_unit(const Args& args, const Tile& of, int turn) {
  const int unit = threadIdx.x + turn * MULTIPLIERS, row = unit / WIDE, at = unit % WIDE * 8;
  return {row, at, row < ENDS && of.row + row < rows_of(args) && of.column + at < COLUMNS};
}
__device__ __forceinline__ void multiply_part(const Args& args, unsigned shared, int warp, int count, float* parts) {
  Tile of = tile_of(blockIdx.x, row_tiles(args));
  of.row += blockIdx.y * ENDS;
  wait_for_kernels_ahead();
  HeldUnit held[TURNS];
  #pragma unroll
  for (int i = 0; i < TURNS; ++i) {
    const OwnUnit own = own_unit(args, of, i);
    if (own.there) hold_unit(args, of.row + own.row, of.column + own.at, held[i]);
  }
  float sums[OWN];
  multiply_runs(shared, warp / 4, 0, count, sums);
  send_sums(shared, warp, sums);
  await(shared + MET_AT, 0);
  add_sums(parts, warp);
  #pragma unroll
  for (int i = 0; i < TURNS; ++i) {
    const OwnUnit own = own_unit(args, of, i);
    if (!own.there) continue;
    const char* const from = (const char*)parts + (own.row / 16 * WIDE + own.at / 8) * SLOT + own.row % 8 * 64 + own.row % 16 / 8 * 8;
    float products[8];
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 pair = *(const float2*)(from + k * 16);
      products[k * 2] = pair.x, products[k * 2 + 1] = pair.y;
    }
    finish_unit(args, of.row + own.row, of.column + own.at, products, held[i]);
  }
}
)";

constexpr std::string_view kMappedEntry =
    R"(extern "C" __global__ void {cluster}__launch_bounds__(THREADS, 1) assay_run(const __grid_constant__ Args args) {{
  const unsigned begin = (unsigned)__cvta_generic_to_shared(ring), shared = (begin + 1023) & ~1023u;
  let_next_begin();
  if (threadIdx.x == 0) {{
    for (int stage = 0; stage < STAGES; ++stage) {{
      make_barrier(full(shared, stage), 1);
      make_barrier(empty(shared, stage), MULTIPLIERS / 32);
    }}
    {more_barriers}show_to_products();  // and to copies
  }}
  {synchronize}();
  const int warp = __shfl_sync(~0u, warp_of_thread(), 0);
  const int first = (int)(RUNS * blockIdx.y / SPLITS), count = (int)(RUNS * (blockIdx.y + 1) / SPLITS) - first;
  if (warp >= MULTIPLIERS / 32) {{
    if (threadIdx.x == MULTIPLIERS) ask_for_all(args, shared, first, count);
    else wait_for_kernels_ahead();
    return;
  }}
  {multiply}(args, shared, warp, count, (float*)((unsigned char*)ring + (shared - begin) + PARTS_AT));
}}
)";

std::string entry_text(int64_t splits) {
  const bool one = splits == 1;
  return fmt::format(
      fmt::runtime(kMappedEntry),
      fmt::arg("cluster", one ? "" : fmt::format("__cluster_dims__(1, {}, 1) ", splits)),
      fmt::arg("more_barriers", one ? "" : "expect_sums(shared);\n    "),
      fmt::arg("synchronize", one ? "__syncthreads" : "synchronize_cluster"),
      fmt::arg("multiply", one ? "multiply_tiles" : "multiply_part"));
}

}  // namespace

std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product) {
  const int64_t pitch = Packing::padded_inputs(product.inputs);
  const int64_t parts_at = cuda_warpgroup_ring_bytes(shape);
  return fmt::format(
      "\nenum {{ GRAIN = {}, COLUMNS = {}, COLUMN_TILES = {}, RUN = {}, RUNS = {}, STAGES = {}, "
      "SPLITS = {}, CHUNK = {}, SLOT = {},\n       PARTS_PITCH = {}, PARTS_AT = {}, BARRIERS_AT = "
      "{}, "
      "X_AT = {}, WHOLE = 1,\n       LEFT_BYTES = ROWS * 128, MULTIPLIERS = ROWS * 2, "
      "STAGE_BYTES = (ROWS + GRAIN) * 128, OWN = GRAIN / 2 }};\n",
      shape.columns, packed_columns(product.packing), shape.blocks, kCudaTensorRun,
      pitch / kCudaTensorRun, shape.laps, shape.splits, shape.round, kCudaWarpgroupSlot,
      cuda_warpgroup_pitch(shape), parts_at, parts_at + cuda_warpgroup_parts_bytes(shape),
      kCudaCounters);
}

std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape) {
  const bool f16 = kernel.buffers[product.weight].dtype == DType::kF16;
  return (library_product(kernel, product).prologue ? print_library_prologue(kernel, product)
                                                    : "") +
         unit_functions_text(kernel, product) + unit_finish_text(kernel, product) +
         cuda_barrier_text() + cuda_warpgroup_product_text(f16 ? "f16" : "bf16", shape.columns) +
         cuda_stages_text() + std::string(kMappedRun) +
         std::string(shape.splits > 1 ? kParts : kTiles) + entry_text(shape.splits);
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
