// Attention of decoding on tensor cores as a source template: a block has a range of positions,
// each of its warps a ring of tiles of them.
#include <fmt/format.h>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

// Up to 8 query heads that share keys are the rows of a fragment's upper half, and the same heads'
// remainders of rounding those of its lower half: queries and weights keep 16 bits of bf16 (22 of
// fp16) at no cost, because the fragment has the rows anyway. A warp takes every DECODE_WARPS-th
// tile of the block's range through a ring of its own, and corrects its softmax, in base 2, as
// larger scores come. Positions that the kernel ahead doesn't write, all but the newest, are asked
// for before the wait, but for the ring's last tile, behind which the queries would wait. Warps are
// put together in shared memory; ranges by the last block of a head, for which the others leave
// words: values [range][heads of the piece][HEAD_DIM] not yet divided by the sum, and behind them
// the largest score and the sum of each.
constexpr std::string_view kSteps = R"(
enum { TILE = 16, CHUNKS = HEAD_DIM / 8, COPIES = TILE * CHUNKS / 32, PART_BYTES = TILE * HEAD_DIM * 2,
       TILE_BYTES = 2 * PART_BYTES, STEPS = HEAD_DIM / 16, OUT_TILES = HEAD_DIM / 8, EVERY = 0x7fffffff,
       VECTORS = PIECE * HEAD_DIM / 4, TEAMS = VECTORS < DECODE_THREADS ? DECODE_THREADS / VECTORS : 1 };
extern __shared__ uint4 ring[];  // by warp and tile: 16 positions' keys, then their values

__device__ __forceinline__ float2 load_two(const float* p) { return *(const float2*)p; }
__device__ __forceinline__ float2 load_two(const unsigned short* p) {
  const unsigned both = *(const unsigned*)p;
  return make_float2(widen_value((unsigned short)(both & 0xffffu)), widen_value((unsigned short)(both >> 16)));
}
__device__ __forceinline__ float remainder_of(float x, unsigned short rounded) { return x - widen_value(rounded); }
// The upper and lower row of a fragment for two neighbouring numbers.
__device__ __forceinline__ void split_pair(float x, float y, unsigned& upper, unsigned& lower) {
  upper = pack(x, y);
  lower = pack(remainder_of(x, (unsigned short)(upper & 0xffffu)), remainder_of(y, (unsigned short)(upper >> 16)));
}
// Where 16 bytes of a position lie in a part: the eight rows of a matrix meet all banks.
__device__ __forceinline__ unsigned place_of(int row, int chunk) {
  return (unsigned)(row * CHUNKS + (CHUNKS % 8 == 0 ? chunk ^ (row & 7) : (chunk + row) % CHUNKS)) * 16;
}
// Requests the positions in [from, to) of the tile that begins at position `p0`; positions from `stop` on become zeros.
__device__ __forceinline__ void ask_tile(unsigned tile, const cache_t* keys, const cache_t* values, int p0, int from,
                                         int to, int stop) {
  #pragma unroll
  for (int i = 0; i < COPIES; ++i) {
    const int at = i * 32 + lane_of_thread(), row = at / CHUNKS, chunk = at % CHUNKS, p = p0 + row;
    if (p < from || p >= to) continue;
    const bool exists = p < stop;
    const long element = exists ? (long)p * HEAD_DIM + chunk * 8 : 0;
    load_piece(tile + place_of(row, chunk), keys + element, exists);
    load_piece(tile + PART_BYTES + place_of(row, chunk), values + element, exists);
  }
}
__device__ __forceinline__ void end_tile() { asm volatile("cp.async.commit_group;" ::: "memory"); }

struct Softmax { float out[OUT_TILES][4], largest, sum; };
// 16 positions from `p0` on, of which those before `stop` count.
__device__ __forceinline__ void take_tile(unsigned tile, int p0, int stop, const unsigned (&q)[STEPS][4], Softmax& own) {
  const int lane = lane_of_thread();
  float scores[2][4] = {};
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    unsigned key[4];
    load_matrices(key, tile + place_of(lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
    multiply(scores[0], q[k], key[0], key[1]);
    multiply(scores[1], q[k], key[2], key[3]);
  }
  float m = own.largest, weights[2][2];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int p = p0 + i / 2 * 8 + lane % 4 * 2 + i % 2;
    float& score = weights[i / 2][i % 2];
    score = p < stop ? (scores[i / 2][i % 2] + scores[i / 2][i % 2 + 2]) * SCALE_IN_BASE_2 : MISSING;
    m = fmaxf(m, score);
  }
  m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
  m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
  const float correction = power_of_2(own.largest - m);
  own.largest = m;
  own.sum *= correction;
  unsigned weight[4];
  #pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float x = power_of_2(weights[i][0] - m), y = power_of_2(weights[i][1] - m);
    own.sum += x + y;
    split_pair(x, y, weight[2 * i], weight[2 * i + 1]);
  }
  #pragma unroll
  for (int o = 0; o < OUT_TILES; o += 2) {
    unsigned value[4];
    load_matrices_turned(value, tile + PART_BYTES + place_of(lane % 16, o + lane / 16));
    #pragma unroll
    for (int i = 0; i < 4; ++i) own.out[o][i] *= correction, own.out[o + 1][i] *= correction;
    multiply(own.out[o], weight, value[0], value[1]);
    multiply(own.out[o + 1], weight, value[2], value[3]);
  }
}

// Largest score and sum of weights, to which the outputs, not yet divided by the sum, belong.
struct State { float largest, sum; };
__device__ __forceinline__ void scale_by(float4& v, float x) { v.x *= x, v.y *= x, v.z *= x, v.w *= x; }
__device__ __forceinline__ void add_scaled(float4& to, const float4& v, float x) {
  to.x += v.x * x, to.y += v.y * x, to.z += v.z * x, to.w += v.w * x;
}
__device__ __forceinline__ void store_four(result_t* out, int v, int heads, const float4& value, float sum) {
  if (v * 4 >= heads * HEAD_DIM) return;
  store_value(out + v * 4, value.x / sum), store_value(out + v * 4 + 1, value.y / sum);
  store_value(out + v * 4 + 2, value.z / sum), store_value(out + v * 4 + 3, value.w / sum);
}
// The ranges of a team, which takes every TEAMS-th: four elements of them, AT_ONCE ranges asked for at a time.
__device__ __forceinline__ State merge_team(const float* parts, int splits, int team, int v, float4& value) {
  enum { AT_ONCE = 8, PITCH = PIECE * HEAD_DIM };
  const float* states = parts + (long)splits * PITCH;
  const int head = v * 4 / HEAD_DIM;
  State total = {SMALLEST, 0.0f};
  for (int s0 = team; s0 < splits; s0 += AT_ONCE * TEAMS) {
    float4 values_of[AT_ONCE];
    State of[AT_ONCE];
    float most = total.largest;
    bool all;
    do {
      all = true;
      #pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        const int s = s0 + i * TEAMS < splits ? s0 + i * TEAMS : s0;
        of[i].largest = look(states + (s * PIECE + head) * 2), of[i].sum = look(states + (s * PIECE + head) * 2 + 1);
        values_of[i] = look((const float4*)(parts + (long)s * PITCH) + v);
      }
      #pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) all = all && has_come(of[i].largest) && has_come(of[i].sum) && has_come(values_of[i]);
    } while (!all);
    #pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) most = fmaxf(most, of[i].largest);
    const float before = power_of_2(total.largest - most);
    total.sum *= before, total.largest = most;
    scale_by(value, before);
    #pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const float scale = s0 + i * TEAMS < splits ? power_of_2(of[i].largest - most) : 0.0f;
      total.sum += of[i].sum * scale;
      add_scaled(value, values_of[i], scale);
    }
  }
  return total;
}
// The ranges' parts of a piece, by the last block.
__device__ __forceinline__ void merge_ranges(const float* parts, int splits, int heads, result_t* out) {
  if (TEAMS == 1) {
    for (int v = threadIdx.x; v < heads * HEAD_DIM / 4; v += DECODE_THREADS) {
      float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      const State total = merge_team(parts, splits, 0, v, value);
      store_four(out, v, heads, value, total.sum);
    }
    return;
  }
  float4* const values = (float4*)ring;
  State* const states = (State*)(values + TEAMS * VECTORS);
  if (threadIdx.x < TEAMS * VECTORS) {
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int v = threadIdx.x % VECTORS;
    State total = {SMALLEST, 0.0f};
    if (v * 4 < heads * HEAD_DIM) total = merge_team(parts, splits, threadIdx.x / VECTORS, v, value);
    states[threadIdx.x] = total;
    values[threadIdx.x] = value;
  }
  __syncthreads();
  if (threadIdx.x >= VECTORS) return;
  State total = {SMALLEST, 0.0f};
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  #pragma unroll 8
  for (int t = 0; t < TEAMS; ++t) total.largest = fmaxf(total.largest, states[t * VECTORS + threadIdx.x].largest);
  #pragma unroll 8
  for (int t = 0; t < TEAMS; ++t) {
    const float scale = power_of_2(states[t * VECTORS + threadIdx.x].largest - total.largest);
    total.sum += states[t * VECTORS + threadIdx.x].sum * scale;
    add_scaled(value, values[t * VECTORS + threadIdx.x], scale);
  }
  store_four(out, (int)threadIdx.x, heads, value, total.sum);
}

extern "C" __global__ void BOUNDS assay_decode(const Args args) {
  __shared__ State states[DECODE_WARPS][8];
  let_next_begin();
  const Sizes n = sizes_of(args);
  const int piece = blockIdx.x % PIECES, kv = blockIdx.x / PIECES % KV_HEADS;
  const long b = blockIdx.x / (PIECES * KV_HEADS);
  const int step = blockIdx.z, split = blockIdx.y, splits = gridDim.y;
  const int newest = ((const int*)args.buffers[LENGTHS])[b], past = newest + step + 1;
  const int first = ((const int*)args.buffers[PAD])[b];
  const int share = past > first ? (past - first + splits - 1) / splits : 0, chunk = (share + TILE - 1) / TILE * TILE;
  const int begin = first + split * chunk, stop = begin + chunk < past ? begin + chunk : past;
  const long head = (b * n.q_len + step) * HEADS + kv * GROUP + piece * PIECE;
  const int heads = GROUP - piece * PIECE < PIECE ? GROUP - piece * PIECE : PIECE;
  const cache_t* keys = head_of(args.buffers[KEYS], CACHE_ROW(args, b), kv, n.capacity);
  const cache_t* values = head_of(args.buffers[VALUES], CACHE_ROW(args, b), kv, n.capacity);
  const int lane = lane_of_thread(), warp = warp_of_thread();
  uint4* const own_ring = ring + warp * (RING_TILES * TILE_BYTES / 16);
  const unsigned tiles = (unsigned)__cvta_generic_to_shared(own_ring);
  const int own_first = begin + warp * TILE;
  #pragma unroll
  for (int i = 0; i < RING_TILES; ++i) {
    const int p0 = own_first + i * DECODE_WARPS * TILE;
    if (p0 >= stop || i >= AHEAD) continue;
    ask_tile(tiles + i * TILE_BYTES, keys, values, p0, 0, newest, stop);
    if (p0 + TILE <= newest) end_tile();
  }
  wait_for_kernels_ahead();
  float2 asked[STEPS][2];  // of the queries
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      const query_t* from = (const query_t*)args.buffers[Q] + (head + lane / 4) * HEAD_DIM + k * 16 + i * 8 + lane % 4 * 2;
      asked[k][i] = lane / 4 < heads ? load_two(from) : make_float2(0.0f, 0.0f);
    }
  }
  #pragma unroll
  for (int i = 0; i < RING_TILES; ++i) {
    const int p0 = own_first + i * DECODE_WARPS * TILE;
    if (i < AHEAD && p0 < stop && p0 + TILE <= newest) continue;
    if (p0 < stop) ask_tile(tiles + i * TILE_BYTES, keys, values, p0, i < AHEAD ? newest : 0, EVERY, stop);
    end_tile();
  }
  result_t* out = (result_t*)args.buffers[OUT] + head * HEAD_DIM;
  if (past <= first) {  // padding sees itself alone
    for (int i = threadIdx.x; split == 0 && i < heads * HEAD_DIM; i += DECODE_THREADS) {
      store_value(out + i, widen_value(values[(long)(past - 1) * HEAD_DIM + i % HEAD_DIM]));
    }
    return;
  }
  unsigned q[STEPS][4];
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) split_pair(asked[k][i].x, asked[k][i].y, q[k][2 * i], q[k][2 * i + 1]);
  }
  Softmax own = {{}, SMALLEST, 0.0f};
  int slot = 0;
  for (int p0 = own_first; p0 < stop; p0 += DECODE_WARPS * TILE) {
    const unsigned tile = tiles + slot * TILE_BYTES;
    asm volatile("cp.async.wait_group %0;" :: "n"(RING_TILES - 1) : "memory");
    __syncwarp();  // what other lanes have copied
    take_tile(tile, p0, stop, q, own);
    __syncwarp();  // all lanes have read
    const int next = p0 + RING_TILES * DECODE_WARPS * TILE;
    if (next < stop) ask_tile(tile, keys, values, next, 0, EVERY, stop);
    end_tile();
    slot = slot + 1 == RING_TILES ? 0 : slot + 1;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();  // a warp's values take the place of its tiles
  own.sum += __shfl_xor_sync(~0u, own.sum, 1);
  own.sum += __shfl_xor_sync(~0u, own.sum, 2);
  if (lane / 4 < heads) {
    #pragma unroll
    for (int o = 0; o < OUT_TILES; ++o) {
      float2* const to = (float2*)own_ring + (lane / 4 * HEAD_DIM + o * 8) / 2 + lane % 4;
      *to = make_float2(own.out[o][0] + own.out[o][2], own.out[o][1] + own.out[o][3]);
    }
    if (lane % 4 == 0) states[warp][lane / 4] = {own.largest, own.sum};
  }
  __syncthreads();
  constexpr int WORDS = PIECE * (HEAD_DIM + 4);  // of a piece's range
  const long pieces = (long)gridDim.x * gridDim.z, number = ((b * n.q_len + step) * KV_HEADS + kv) * PIECES + piece;
  float* parts = args.workspace - (pieces - number) * splits * WORDS;
  for (int v = threadIdx.x; v < heads * HEAD_DIM / 4; v += DECODE_THREADS) {
    const int g = v * 4 / HEAD_DIM;
    State total = {SMALLEST, 0.0f};
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    #pragma unroll
    for (int w = 0; w < DECODE_WARPS; ++w) total.largest = fmaxf(total.largest, states[w][g].largest);
    #pragma unroll
    for (int w = 0; w < DECODE_WARPS; ++w) {
      const float scale = power_of_2(states[w][g].largest - total.largest);
      total.sum += states[w][g].sum * scale;
      add_scaled(value, *((const float4*)(ring + w * (RING_TILES * TILE_BYTES / 16)) + v), scale);
    }
    if (splits == 1) {
      store_four(out, v, heads, value, total.sum);
      continue;
    }
    leave((float4*)(parts + (long)split * PIECE * HEAD_DIM) + v, value);
    if (v * 4 % HEAD_DIM == 0) {
      float* const state = parts + (long)splits * PIECE * HEAD_DIM + (split * PIECE + g) * 2;
      leave(state, total.largest), leave(state + 1, total.sum);
    }
  }
  if (split < splits - 1 || splits == 1) return;
  __syncthreads();  // the block has left its own
  merge_ranges(parts, splits, heads, out);
  __syncthreads();  // all have looked
  for (int i = threadIdx.x; i < splits * WORDS / 4; i += DECODE_THREADS) ((float4*)parts)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
)";

constexpr int64_t kMostHeads = 8;  // rows of a fragment's upper half

// A prompt's kernel has the form for one row, which its runs don't launch.
int64_t queries_of_step(const Kernel& kernel) {
  const Specialization sizes = cuda_form_sizes(kernel);
  const int64_t queries = sizes.q_len.value_or(1);
  return queries > kCudaFewQueries ? 1 : queries * sizes.batch.value_or(1);
}

// A block's threads, and a warp's tiles that are asked for ahead.
struct StepsShape {
  int64_t threads = kCudaThreads, ring_tiles = 2;
  int64_t registers = 0;  // of a thread at most; 0: the compiler's
  bool alone = false;  // a multiprocessor has one such block, of all of whose memory it makes use
};

// Two blocks of 64 KB leave room for a third, which is the next kernel's: on some multiprocessors
// it begins early, and they end late. So where the heads' ranges give each multiprocessor one
// block, that has as much memory by itself, if products don't want that. Small caches, of one range
// a head, end sooner with fewer warps to put together. Elsewhere, where there are many blocks,
// small ones: more of them wait for memory at a time. The bounds are where an H200 was faster
// (docs/engine-figures.md).
StepsShape steps_shape(const Kernel& kernel, const AttentionKernel& k) {
  constexpr int64_t kLong = 2048, kLongThreads = 512, kFewThreads = 128, kWideRegisters = 160;
  const int64_t rows = queries_of_step(kernel), capacity = kernel.dims.capacity.value_or(0);
  const int64_t heads = rows * k.kv_heads * cuda_steps_pieces(k);
  const bool wide = k.head_dim > 64, split = capacity > kCudaUnsplit;
  const int64_t ranges = split ? kCudaMultiprocessors / heads : 1;
  const bool all = 10 * ranges * heads >= 9 * kCudaMultiprocessors;
  const bool room = kernel.target == "sm_90a" && !kernel.beside_rings;
  if (room && capacity > 0 && heads <= kCudaMultiprocessors) {
    if (wide && (all || !split)) return {.registers = kWideRegisters, .alone = true};
    if (all && capacity > kLong) return {.threads = kLongThreads, .alone = true};
    if (all && split) return {.ring_tiles = 3, .alone = true};
  }
  const bool few = rows > 1 && rows <= kProductRows && capacity > 0 && !split;
  if (wide || few || heads >= 2 * kCudaMultiprocessors) return {.threads = kFewThreads};
  return {};
}

}  // namespace

int64_t cuda_steps_pieces(const AttentionKernel& k) {
  return (k.heads / k.kv_heads + kMostHeads - 1) / kMostHeads;
}

int64_t cuda_steps_threads(const Kernel& kernel, const AttentionKernel& k) {
  return steps_shape(kernel, k).threads;
}

int64_t cuda_steps_blocks(const Kernel& kernel, const AttentionKernel& k) {
  return (steps_shape(kernel, k).alone ? 1 : 2) * kCudaMultiprocessors;
}

int64_t cuda_steps_shared_bytes(const Kernel& kernel, const AttentionKernel& k) {
  constexpr int64_t kTile = 16, kParts = 2, kElementBytes = 2;
  const StepsShape shape = steps_shape(kernel, k);
  return shape.threads / 32 * shape.ring_tiles * kParts * kTile * k.head_dim * kElementBytes;
}

std::string cuda_steps_text(const Kernel& kernel, const AttentionKernel& k) {
  const StepsShape shape = steps_shape(kernel, k);
  const bool small = k.head_dim <= 64 && shape.threads < kCudaThreads;
  // Where heads have keys of their own, a thread needs more registers than five blocks leave.
  const int64_t blocks = k.heads == k.kv_heads ? 4 : 5;
  const int64_t together = small ? blocks : shape.alone ? 1 : 2;
  return fmt::format("\nnamespace of_steps {{\nenum {{ RING_TILES = {}, AHEAD = {} }};\n",
                     shape.ring_tiles, shape.ring_tiles - 1) +
         cuda_bounds_text(fmt::format("DECODE_THREADS, AT_LEAST({})", together), shape.registers) +
         std::string(kSteps) + "}\n";
}

}  // namespace assay::engine
