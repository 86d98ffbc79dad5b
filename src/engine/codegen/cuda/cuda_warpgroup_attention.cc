// Attention of a prompt on GPUs that multiply by warpgroups (sm_90a): a block's last warpgroup
// fills tiles of positions in shared memory, each of the others has 64 queries.
#include <fmt/format.h>

#include <algorithm>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

// Tiles go from the last positions to the first, so that those that the causal mask cuts come
// first. While one warpgroup takes exponentials of its scores, products of the others run. Rows of
// 128 bytes lie in shared memory in wgmma's swizzle of 128 bytes: the 16 bytes `piece` of row r are
// at piece ^ r % 8; of heads of 128 elements a tile has two bands of 64. A tile is loaded by one
// warp: warp w of the loading warpgroup has slot w, which is keys or values of every other tile.
constexpr std::string_view kWarpgroups = R"(
enum { QUERIES = 64 * CONSUMERS, PREFILL_THREADS = 128 * (CONSUMERS + 1), TILE = 128, SLOTS_OF_TILES = 4,
       BANDS = HEAD_DIM / 64, BAND_BYTES = TILE * 128, TILE_BYTES = BANDS * BAND_BYTES, QUERY_BAND_BYTES = 64 * 128,
       QUERIES_AT = SLOTS_OF_TILES * TILE_BYTES, BARRIERS_AT = QUERIES_AT + CONSUMERS * BANDS * QUERY_BAND_BYTES };
extern __shared__ uint4 tiles[];

__device__ __forceinline__ uint4 load_eight(const float* p) {
  const float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
  return make_uint4(pack(a.x, a.y), pack(a.z, a.w), pack(b.x, b.y), pack(b.z, b.w));
}
__device__ __forceinline__ uint4 load_eight(const unsigned short* p) { return *(const uint4*)p; }
__device__ __forceinline__ void store_pair(float* p, float a, float b) { *(float2*)p = make_float2(a, b); }
__device__ __forceinline__ void store_pair(unsigned short* p, float a, float b) { *(unsigned*)p = pack_result(a, b); }

// Barriers in shared memory, by address. Slots are full for whoever multiplies, empty for whoever
// loads; a warpgroup's queries are there.
__device__ __forceinline__ unsigned full(unsigned shared, int slot) { return shared + BARRIERS_AT + slot * 8; }
__device__ __forceinline__ unsigned empty(unsigned shared, int slot) { return full(shared, SLOTS_OF_TILES + slot); }
__device__ __forceinline__ unsigned asked(unsigned shared, int group) { return full(shared, 2 * SLOTS_OF_TILES + group); }

// A matrix in shared memory, 1024 bytes from eight rows to the next.
__device__ __forceinline__ unsigned long matrix_at(unsigned address) {
  return (unsigned long)(address >> 4 & 0x3fff) | (unsigned long)(BAND_BYTES >> 4) << 16 | 64ul << 32 | 1ul << 62;
}

// Queries of one head: a block has several of these items one after the other, longer ones first. Tiles of
// positions are counted through all of them; of an item the last comes first.
struct Item {
  long b, head;
  int t0, step;  // the first warpgroup's first query, and from one warpgroup's to the next one's
  int first, before, stop, count, before_tiles;
};
__device__ __forceinline__ int position_of(const Item& item, int tile) { return item.first + (item.count - 1 - tile) * TILE; }
// Finds the block's item of this round; false if there are no more. Where each block has one item, the second of two
// warpgroups has queries as far from the prompt's begin as the first's are from its end, so that all blocks multiply equally much.
__device__ __forceinline__ bool find_item(const Args& args, const Sizes& n, int round, Item& item) {
  const long heads = n.batch * HEADS, tiles = (n.q_len + QUERIES - 1) / QUERIES;
  const long number = (long)round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  if (number >= heads * tiles) return false;
  item.before_tiles += item.count;
  item.b = number % heads / HEADS, item.head = number % HEADS;
  int end;
  if (CONSUMERS == 2 && heads * tiles <= gridDim.x) {
    const int from_begin = (int)(number / heads) * 64, last = ((int)n.q_len - 1) / 64 * 64;
    item.t0 = last - from_begin, end = item.t0 + 64;
    item.step = from_begin < item.t0 ? from_begin - item.t0 : (int)n.q_len;  // the middle is the first's: the second has none
  } else {
    item.t0 = (int)(tiles - 1 - number / heads) * QUERIES, end = item.t0 + QUERIES, item.step = 64;
  }
  item.first = ((const int*)args.buffers[PAD])[item.b], item.before = ((const int*)args.buffers[LENGTHS])[item.b];
  item.stop = item.before + (end < (int)n.q_len ? end : (int)n.q_len);
  item.count = item.stop > item.first ? (item.stop - item.first + TILE - 1) / TILE : 0;
  return true;
}

// The tiles of an item that this warp's slot gets, behind `turn` others.
__device__ __forceinline__ void load_tiles(unsigned shared, int slot, const Item& item, const cache_t* from, int& turn) {
  const int lane = lane_of_thread(), row = lane / 8, piece = lane % 8;
  for (int tile = (slot / 2 + item.before_tiles) % 2; tile < item.count; tile += 2, ++turn) {
    if (turn > 0) await(empty(shared, slot), turn - 1);
    const int p0 = position_of(item, tile);
    #pragma unroll 4
    for (int i = 0; i < TILE / 4; ++i) {
      const int r = i * 4 + row;
      const bool exists = p0 + r < item.stop;
      const cache_t* at = from + (exists ? (long)(p0 + r) * HEAD_DIM + piece * 8 : 0);
      #pragma unroll
      for (int band = 0; band < BANDS; ++band) {
        load_piece(shared + slot * TILE_BYTES + band * BAND_BYTES + r * 128 + (piece ^ r % 8) * 16, at + band * 64, exists);
      }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    show_to_products();
    __syncwarp();
    if (lane == 0) arrive(full(shared, slot));
  }
}

// A warpgroup's queries and its scores against one tile, in the fragments of wgmma: a thread has
// rows `own` and `own` + 8 of the prompt, and of each eight columns two.
struct Rows {
  int own, limit;  // the last position that the first row sees
  float largest[2], sum[2];
};
__device__ __forceinline__ void multiply_keys(float (&scores)[TILE / 2], unsigned queries, unsigned keys) {
  begin_products();
  #pragma unroll
  for (int k = 0; k < HEAD_DIM / 16; ++k) {
    const unsigned step = k % 4 * 32;
    if (k == 0) multiply_wide<0>(scores, matrix_at(queries), matrix_at(keys));
    else multiply_wide<1>(scores, matrix_at(queries + k / 4 * QUERY_BAND_BYTES + step), matrix_at(keys + k / 4 * BAND_BYTES + step));
  }
  end_products();
}
__device__ __forceinline__ void multiply_values(float (&out)[HEAD_DIM / 2], const unsigned (&weights)[TILE / 4], unsigned values) {
  begin_products();
  #pragma unroll
  for (int k = 0; k < TILE / 16; ++k) {
    multiply_weights(out, weights[4 * k], weights[4 * k + 1], weights[4 * k + 2], weights[4 * k + 3], matrix_at(values + k * 2048));
  }
  end_products();
}
// Scores become weights, not yet divided by their sum, and what was summed before has to be
// multiplied by `correction`.
__device__ __forceinline__ void weigh(float (&scores)[TILE / 2], Rows& rows, int p0, float (&correction)[2]) {
  float m[2] = {rows.largest[0], rows.largest[1]}, base[2], total[2] = {};
  if (p0 + TILE - 1 > rows.limit) {
    const int left = rows.limit + lane_of_thread() / 4 - p0 - lane_of_thread() % 4 * 2;
    #pragma unroll
    for (int s = 0; s < TILE / 2; ++s) {
      if (s / 4 * 8 + s % 2 > left + s % 4 / 2 * 8) scores[s] = SMALLEST;
    }
  }
  #pragma unroll
  for (int s = 0; s < TILE / 2; ++s) m[s % 4 / 2] = fmaxf(m[s % 4 / 2], scores[s]);
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    m[r] = fmaxf(m[r], __shfl_xor_sync(~0u, m[r], 1));
    m[r] = fmaxf(m[r], __shfl_xor_sync(~0u, m[r], 2));
    correction[r] = power_of_2((rows.largest[r] - m[r]) * SCALE_IN_BASE_2);
    rows.largest[r] = m[r];
    base[r] = m[r] == SMALLEST ? 0.0f : -m[r] * SCALE_IN_BASE_2;  // a row that has seen nothing yet
  }
  #pragma unroll
  for (int s = 0; s < TILE / 2; ++s) {
    scores[s] = power_of_2(fmaf(scores[s], SCALE_IN_BASE_2, base[s % 4 / 2]));
    total[s % 4 / 2] += scores[s];
  }
  #pragma unroll
  for (int r = 0; r < 2; ++r) rows.sum[r] = rows.sum[r] * correction[r] + total[r];
}
__device__ __forceinline__ void pack_all(const float (&scores)[TILE / 2], unsigned (&weights)[TILE / 4]) {
  #pragma unroll
  for (int i = 0; i < TILE / 4; ++i) weights[i] = pack(scores[2 * i], scores[2 * i + 1]);
}
__device__ __forceinline__ void release(unsigned shared, int slot) {
  __syncwarp();
  if (lane_of_thread() == 0) arrive(empty(shared, slot));
}

// All tiles of a warpgroup, whose rows see positions before `stop`.
__device__ __forceinline__ void attend(unsigned shared, unsigned queries, const Item& item, int stop, Rows& rows,
                                       float (&out)[HEAD_DIM / 2]) {
  const auto slot_of = [&](int tile) { return (item.before_tiles + tile) * 2 % SLOTS_OF_TILES; };
  const auto await_keys = [&](int tile) { await(full(shared, slot_of(tile)), (item.before_tiles + tile) / 2); };
  const auto await_values = [&](int tile) { await(full(shared, slot_of(tile) + 1), (item.before_tiles + tile) / 2); };
  float scores[TILE / 2], correction[2];
  unsigned weights[TILE / 4];
  int tile = 0;
  for (; tile < item.count && position_of(item, tile) >= stop; ++tile) {
    await_keys(tile);
    release(shared, slot_of(tile));
    await_values(tile);
    release(shared, slot_of(tile) + 1);
  }
  if (tile == item.count) return;
  await_keys(tile);
  multiply_keys(scores, queries, shared + slot_of(tile) * TILE_BYTES);
  await_products<0>(scores);
  release(shared, slot_of(tile));
  weigh(scores, rows, position_of(item, tile), correction);
  pack_all(scores, weights);
  for (++tile; tile < item.count; ++tile) {
    const int slot = slot_of(tile), values = slot_of(tile - 1) + 1;
    await_keys(tile);
    multiply_keys(scores, queries, shared + slot * TILE_BYTES);
    await_values(tile - 1);
    multiply_values(out, weights, shared + values * TILE_BYTES);
    await_products<1>(scores);
    release(shared, slot);
    weigh(scores, rows, position_of(item, tile), correction);
    await_products<0>(out);
    release(shared, values);
    #pragma unroll
    for (int o = 0; o < HEAD_DIM / 2; ++o) out[o] *= correction[o % 4 / 2];
    pack_all(scores, weights);
  }
  await_values(tile - 1);
  multiply_values(out, weights, shared + (slot_of(tile - 1) + 1) * TILE_BYTES);
  await_products<0>(out);
  release(shared, slot_of(tile - 1) + 1);
}

// A warpgroup's queries from memory to its part of shared memory.
__device__ __forceinline__ void load_queries(const query_t* from, unsigned char* tiles_at, unsigned queries, int count) {
  enum { PIECES_EACH = HEAD_DIM / 16 };
  uint4 x[PIECES_EACH];  // asked for together
  #pragma unroll
  for (int i = 0; i < PIECES_EACH; ++i) {
    const int at = i * 128 + threadIdx.x % 128, r = at / (HEAD_DIM / 8), piece = at % (HEAD_DIM / 8);
    x[i] = r < count ? load_eight(from + (long)r * HEADS * HEAD_DIM + piece * 8) : make_uint4(0, 0, 0, 0);
  }
  #pragma unroll
  for (int i = 0; i < PIECES_EACH; ++i) {
    const int at = i * 128 + threadIdx.x % 128, r = at / (HEAD_DIM / 8), piece = at % (HEAD_DIM / 8);
    *(uint4*)(tiles_at + queries + piece / 8 * QUERY_BAND_BYTES + r * 128 + (piece % 8 ^ r % 8) * 16) = x[i];
  }
  show_to_products();
}

// Stores the thread's part of the results; a row of padding, which sees itself alone, gets its own values.
__device__ __forceinline__ void store_rows(const Item& item, const Rows& rows, const float (&out)[HEAD_DIM / 2],
                                           const cache_t* values, out_t* to, int q_len) {
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = rows.sum[r];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int own = rows.own + r * 8, position = item.before + own, d = lane_of_thread() % 4 * 2;
    if (own >= q_len) continue;
    out_t* row = to + (long)own * HEADS * HEAD_DIM + d;
    const cache_t* itself = values + (long)position * HEAD_DIM + d;
    const bool padding = position < item.first;
    const float share = 1.0f / sum;
    #pragma unroll
    for (int o = 0; o < HEAD_DIM / 8; ++o) {
      store_pair(row + o * 8, padding ? widen_value(itself[o * 8]) : out[4 * o + 2 * r] * share,
                 padding ? widen_value(itself[o * 8 + 1]) : out[4 * o + 2 * r + 1] * share);
    }
  }
}

extern "C" __global__ void __launch_bounds__(PREFILL_THREADS, PREFILL_BLOCKS) assay_prefill(const Args args) {
  let_next_begin();
  const unsigned begin = (unsigned)__cvta_generic_to_shared(tiles), shared = (begin + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < SLOTS_OF_TILES; ++slot) {
      make_barrier(full(shared, slot), 1);
      make_barrier(empty(shared, slot), 4 * CONSUMERS);
    }
    for (int group = 0; group < CONSUMERS; ++group) make_barrier(asked(shared, group), 128);
  }
  __syncthreads();
  const Sizes n = sizes_of(args);  // these, lengths and padding are there before the wait
  const int group = __shfl_sync(~0u, warp_of_thread(), 0) / 4, warp = warp_of_thread() % 4, q_len = (int)n.q_len;
  const auto part_of = [&](const void* cache, const Item& item) {
    return head_of(cache, CACHE_ROW(args, item.b), item.head / GROUP, n.capacity);
  };
  Item item = {};
  if (group == CONSUMERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 " LOADING_REGISTERS ";");
    int turn = 0;
    for (int round = 0; find_item(args, n, round, item); ++round) {
      if (round == 0) wait_for_kernels_ahead();
      load_tiles(shared, warp, item, part_of(warp % 2 ? args.buffers[VALUES] : args.buffers[KEYS], item), turn);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 " MULTIPLYING_REGISTERS ";");
    const unsigned queries = QUERIES_AT + group * BANDS * QUERY_BAND_BYTES;
    for (int round = 0; find_item(args, n, round, item); ++round) {
      if (round == 0) wait_for_kernels_ahead();
      const int t = item.t0 + group * item.step;  // the warpgroup's first query
      const long at = ((item.b * q_len + t) * HEADS + item.head) * HEAD_DIM;
      load_queries((const query_t*)args.buffers[Q] + at, (unsigned char*)tiles + (shared - begin), queries, q_len - t);
      arrive(asked(shared, group));
      await(asked(shared, group), 2 * round);
      const int warp_first = t + warp * 16;
      Rows rows = {warp_first + lane_of_thread() / 4, item.before + warp_first, {SMALLEST, SMALLEST}, {}};
      float out[HEAD_DIM / 2] = {};
      attend(shared, shared + queries, item, t >= q_len ? 0 : item.before + t + 64, rows, out);
      arrive(asked(shared, group));  // none reads the queries any more
      store_rows(item, rows, out, part_of(args.buffers[VALUES], item), (out_t*)args.buffers[OUT] + (item.b * q_len * HEADS + item.head) * HEAD_DIM, q_len);
      await(asked(shared, group), 2 * round + 1);
    }
  }
}
)";

constexpr int64_t kTilePositions = 128, kSlots = 4;

// Registers of a thread, by the part of its warpgroup: loading needs few.
int64_t loading_registers(int64_t consumers) {
  return consumers == 3 ? 32 : consumers == 2 ? 40 : 48;
}
int64_t multiplying_registers(int64_t consumers) {
  return consumers == 3 ? 160 : consumers == 2 ? 232 : 208;
}

// Blocks that a multiprocessor has registers for.
int64_t blocks_together(int64_t consumers) {
  return consumers == 1 ? 2 : 1;
}

// Warpgroups that multiply. Registers are enough for two, or three of heads of 64 elements (a
// thread holds scores, weights and sums). Two take the place of three where one or two rounds of
// such blocks are enough, and one the place of two where their blocks are so few that too many
// multiprocessors have none: of one warpgroup a multiprocessor runs two blocks for heads of 64
// elements, and has shared memory for one of 128. The limits are measured
// (docs/engine-figures.md, "Short prompts' attention").
int64_t consumers_of(const Kernel& kernel, const AttentionKernel& k) {
  const Specialization dims = cuda_form_sizes(kernel);
  const bool narrow = k.head_dim <= 64;
  if (!dims.q_len) return narrow ? 3 : 2;
  const int64_t blocks_of_two = dims.batch.value_or(1) * k.heads * ((*dims.q_len + 127) / 128);
  if (narrow && blocks_of_two > 2 * kCudaMultiprocessors) return 3;
  const int64_t wanted = narrow ? kCudaMultiprocessors * 3 / 4 : kCudaMultiprocessors / 2;
  return blocks_of_two < wanted ? 1 : 2;
}

}  // namespace

bool multiplies_by_warpgroups(const Kernel& kernel, const AttentionKernel& k) {
  return kernel.target == "sm_90a" && kernel.buffers[k.keys].dtype != DType::kF32 &&
         (k.head_dim == 64 || k.head_dim == 128);
}

int64_t warpgroup_prefill_threads(const Kernel& kernel, const AttentionKernel& k) {
  return 128 * (consumers_of(kernel, k) + 1);
}

// As many blocks as run at a time.
CudaLaunch warpgroup_prefill_launch(const Kernel& kernel, const AttentionKernel& k,
                                    const DimValues& dims) {
  constexpr int64_t kBarriers = 2 * kSlots + 3, kAlignment = 1024;
  const int64_t consumers = consumers_of(kernel, k), queries = 64 * consumers;
  const int64_t items = dims.batch * k.heads * ((dims.q_len + queries - 1) / queries);
  return {.entry = "assay_prefill",
          .blocks_x = std::min(items, kCudaMultiprocessors * blocks_together(consumers)),
          .threads = warpgroup_prefill_threads(kernel, k),
          .shared_bytes =
              (kSlots * kTilePositions + queries) * k.head_dim * 2 + kBarriers * 8 + kAlignment};
}

std::string warpgroup_prefill_text(const Kernel& kernel, const AttentionKernel& k) {
  const int64_t consumers = consumers_of(kernel, k);
  return fmt::format(
             "enum {{ CONSUMERS = {}, PREFILL_BLOCKS = {} }};\n"
             "#define LOADING_REGISTERS \"{}\"\n#define MULTIPLYING_REGISTERS \"{}\"\n",
             consumers, blocks_together(consumers), loading_registers(consumers),
             multiplying_registers(consumers)) +
         cuda_warpgroup_text(cuda_narrow_name(kernel, k), kTilePositions, k.head_dim) +
         std::string(kWarpgroups);
}

}  // namespace assay::engine
