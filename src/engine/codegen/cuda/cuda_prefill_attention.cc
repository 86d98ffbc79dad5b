// Attention of a prompt on CUDA as source templates: tiles of queries against tiles of positions,
// by tensor cores where the cache is of 16 bits, by plain fp32 elsewhere.
#include <fmt/format.h>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/print_c.h"

namespace assay::engine {
namespace {

// A warp has 16 queries of one head, in the fragments of mma.m16n8k16: their scores against a tile
// of positions become, in place, the left operand of the product with the values. The softmax is
// corrected as larger scores come (Milakov and Gimelshein, 2018), in base 2. The next tile is
// loaded while one is computed. Rows in shared memory are 16 bytes longer than they need to be, so
// that the eight rows of a fragment lie in different banks.
constexpr std::string_view kTensorCores = R"(
enum { QUERIES = 16 * PREFILL_WARPS, POSITIONS_AT_ONCE = 32, PITCH = HEAD_DIM + 8,
       STEPS = HEAD_DIM / 16, SCORE_TILES = POSITIONS_AT_ONCE / 8, OUT_TILES = HEAD_DIM / 8, TILE_BYTES = POSITIONS_AT_ONCE * PITCH * 2 };

__device__ __forceinline__ unsigned load_pair(const float* p) { return pack(p[0], p[1]); }
__device__ __forceinline__ unsigned load_pair(const unsigned short* p) { return *(const unsigned*)p; }
__device__ __forceinline__ void store_pair(float* p, float a, float b) { p[0] = a, p[1] = b; }
__device__ __forceinline__ void store_pair(unsigned short* p, float a, float b) {
  *(unsigned*)p = pack_result(a, b);
}
// The same positions of keys and values.
__device__ __forceinline__ void load_tiles(unsigned to, const cache_t* keys, const cache_t* values, int position, int stop) {
  #pragma unroll 1
  for (int i = threadIdx.x; i < POSITIONS_AT_ONCE * HEAD_DIM / 8; i += PREFILL_THREADS) {
    const int r = i / (HEAD_DIM / 8), d = i % (HEAD_DIM / 8) * 8;
    const bool exists = position + r < stop;
    const long at = exists ? (long)(position + r) * HEAD_DIM + d : 0;
    load_piece(to + (r * PITCH + d) * 2, keys + at, exists);
    load_piece(to + TILE_BYTES + (r * PITCH + d) * 2, values + at, exists);
  }
}

extern "C" __global__ void __launch_bounds__(PREFILL_THREADS, AT_LEAST((HEAD_DIM <= 64 ? 2 : 1) * 8 / PREFILL_WARPS)) assay_prefill(const Args args) {
  __shared__ __align__(16) unsigned char tiles[2][2][TILE_BYTES];  // twice keys and values
  let_next_begin();
  wait_for_kernels_ahead();
  const Sizes n = sizes_of(args);
  const long b = blockIdx.x / HEADS, head = blockIdx.x % HEADS;
  const int t0 = (gridDim.y - 1 - blockIdx.y) * QUERIES;  // the longest first
  const int q_len = (int)n.q_len, before = ((const int*)args.buffers[LENGTHS])[b], kv_len = before + q_len;
  const int lane = lane_of_thread(), group = lane / 4, pair = lane % 4 * 2;
  const int first = ((const int*)args.buffers[PAD])[b];
  const cache_t* keys = head_of(args.buffers[KEYS], CACHE_ROW(args, b), head / GROUP, n.capacity);
  const cache_t* values = head_of(args.buffers[VALUES], CACHE_ROW(args, b), head / GROUP, n.capacity);
  // Of the fragments' two rows, queries `own` and `own` + 8 of the prompt.
  const int own = t0 + warp_of_thread() * 16 + group;
  const long at = ((b * n.q_len + own) * HEADS + head) * HEAD_DIM + pair;
  unsigned q[STEPS][4];
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int below = i % 2 * 8;
      q[k][i] = own + below < q_len
          ? load_pair((const query_t*)args.buffers[Q] + at + (long)below * HEADS * HEAD_DIM + k * 16 + i / 2 * 8) : 0;
    }
  }
  float out[OUT_TILES][4] = {}, largest[2] = {SMALLEST, SMALLEST}, sum[2] = {};
  const int stop = before + t0 + QUERIES < kv_len ? before + t0 + QUERIES : kv_len;
  const unsigned shared = (unsigned)__cvta_generic_to_shared(tiles);
  unsigned now = 0;  // from `shared`
  if (first < stop) load_tiles(shared, keys, values, first, stop);
  for (int p0 = first; p0 < stop; p0 += POSITIONS_AT_ONCE, now ^= 2 * TILE_BYTES) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    const int next = p0 + POSITIONS_AT_ONCE;
    if (next < stop) load_tiles(shared + (now ^ 2 * TILE_BYTES), keys, values, next, stop);
    if (p0 > before + t0 + warp_of_thread() * 16 + 15) continue;  // behind all of the warp's
    float scores[SCORE_TILES][4] = {};
    const unsigned tile = shared + now;
    #pragma unroll
    for (int s = 0; s < SCORE_TILES; ++s) {
      #pragma unroll
      for (int k = 0; k < STEPS; k += 2) {
        unsigned key[4];
        load_matrices(key, tile + ((s * 8 + lane % 8) * PITCH + (k * 2 + (k + 1 < STEPS ? lane / 8 : lane / 8 % 2)) * 8) * 2);
        multiply(scores[s], q[k], key[0], key[1]);
        if (k + 1 < STEPS) multiply(scores[s], q[k + 1], key[2], key[3]);
      }
    }
    const bool all_seen = p0 + POSITIONS_AT_ONCE <= before + t0 + warp_of_thread() * 16 + 1;
    float m[2] = {largest[0], largest[1]};
    #pragma unroll
    for (int s = 0; s < SCORE_TILES; ++s) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int p = p0 + s * 8 + pair + i % 2;
        scores[s][i] = all_seen || p <= before + own + i / 2 * 8 ? scores[s][i] * SCALE_IN_BASE_2 : SMALLEST;
        m[i / 2] = fmaxf(m[i / 2], scores[s][i]);
      }
    }
    float correction[2], total[2] = {};
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      m[r] = fmaxf(m[r], __shfl_xor_sync(~0u, m[r], 1));
      m[r] = fmaxf(m[r], __shfl_xor_sync(~0u, m[r], 2));
      correction[r] = power_of_2(largest[r] - m[r]);
      largest[r] = m[r];
    }
    #pragma unroll
    for (int s = 0; s < SCORE_TILES; ++s) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[s][i] = power_of_2(scores[s][i] - m[i / 2]);
        total[i / 2] += scores[s][i];
      }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum[r] * correction[r] + total[r];
    #pragma unroll
    for (int o = 0; o < OUT_TILES; ++o) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) out[o][i] *= correction[i / 2];
    }
    #pragma unroll
    for (int k = 0; k < SCORE_TILES / 2; ++k) {
      const unsigned weights[4] = {pack(scores[2 * k][0], scores[2 * k][1]), pack(scores[2 * k][2], scores[2 * k][3]),
                                   pack(scores[2 * k + 1][0], scores[2 * k + 1][1]),
                                   pack(scores[2 * k + 1][2], scores[2 * k + 1][3])};
      #pragma unroll
      for (int o = 0; o < OUT_TILES; o += 2) {
        unsigned value[4];
        load_matrices_turned(value, tile + TILE_BYTES + ((k * 16 + lane % 16) * PITCH + (o + lane / 16) * 8) * 2);
        multiply(out[o], weights, value[0], value[1]);
        multiply(out[o + 1], weights, value[2], value[3]);
      }
    }
  }
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
    sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    const int t = own + r * 8, position = before + t;
    if (t >= q_len) continue;
    out_t* to = (out_t*)args.buffers[OUT] + at + (long)r * 8 * HEADS * HEAD_DIM;
    const cache_t* itself = values + (long)position * HEAD_DIM + pair;  // all that padding sees
    const bool padding = position < first;
    #pragma unroll
    for (int o = 0; o < OUT_TILES; ++o) {
      const float x = padding ? widen_value(itself[o * 8]) : out[o][2 * r] / sum[r];
      const float y = padding ? widen_value(itself[o * 8 + 1]) : out[o][2 * r + 1] / sum[r];
      store_pair(to + o * 8, x, y);
    }
  }
}
)";

// A thread has QUERIES / 16 queries against every 16th position of a tile, and every 16th element
// of their values; 16 neighbours share queries. Queries and positions lie in shared memory element
// by element padded with zeros, weights position by position.
constexpr std::string_view kPlain = R"(
enum { OWN = QUERIES / 16, POSITIONS_AT_ONCE = 32, SCORES = POSITIONS_AT_ONCE / 16, PADDED = (HEAD_DIM + 15) / 16 * 16,
       PITCH = PADDED + 4, ELEMENTS = PADDED / 16 };

template <typename T>
__device__ __forceinline__ void load_rows(float* to, int rows, const T* from, long pitch, long count) {
  for (int i = threadIdx.x; i < rows * PADDED; i += THREADS) {
    const int r = i / PADDED, d = i % PADDED;
    to[r * PITCH + d] = r < count && d < HEAD_DIM ? widen_value(from[r * pitch + d]) : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_prefill(const Args args) {
  __shared__ __align__(16) float q[QUERIES * PITCH], cache[POSITIONS_AT_ONCE * PITCH], weights[POSITIONS_AT_ONCE * (QUERIES + 4)];
  let_next_begin();
  wait_for_kernels_ahead();
  const Sizes n = sizes_of(args);
  const long b = blockIdx.x / HEADS, head = blockIdx.x % HEADS;
  const long t0 = (long)(gridDim.y - 1 - blockIdx.y) * QUERIES;  // the longest first
  const int row = threadIdx.x / 16 * OWN, part = threadIdx.x % 16;
  const long first = ((const int*)args.buffers[PAD])[b], before = ((const int*)args.buffers[LENGTHS])[b];
  const cache_t* keys = head_of(args.buffers[KEYS], CACHE_ROW(args, b), head / GROUP, n.capacity);
  const cache_t* values = head_of(args.buffers[VALUES], CACHE_ROW(args, b), head / GROUP, n.capacity);
  const long at = ((b * n.q_len + t0) * HEADS + head) * HEAD_DIM;
  load_rows(q, QUERIES, (const query_t*)args.buffers[Q] + at, (long)HEADS * HEAD_DIM, n.q_len - t0);
  float own[OWN][ELEMENTS] = {}, largest[OWN], sum[OWN] = {};
  #pragma unroll
  for (int r = 0; r < OWN; ++r) largest[r] = SMALLEST;
  const long stop = before + (t0 + QUERIES < n.q_len ? t0 + QUERIES : n.q_len);
  for (long p0 = first; p0 < stop; p0 += POSITIONS_AT_ONCE) {
    __syncthreads();
    load_rows(cache, POSITIONS_AT_ONCE, keys + p0 * HEAD_DIM, HEAD_DIM, stop - p0);
    __syncthreads();
    float scores[OWN][SCORES] = {};
    #pragma unroll 4
    for (int d = 0; d < PADDED; d += 4) {
      float4 key[SCORES];
      #pragma unroll
      for (int j = 0; j < SCORES; ++j) key[j] = *(const float4*)(cache + (part + 16 * j) * PITCH + d);
      #pragma unroll
      for (int r = 0; r < OWN; ++r) {
        const float4 x = *(const float4*)(q + (row + r) * PITCH + d);
        #pragma unroll
        for (int j = 0; j < SCORES; ++j) {
          scores[r][j] += x.x * key[j].x + x.y * key[j].y + x.z * key[j].z + x.w * key[j].w;
        }
      }
    }
    #pragma unroll
    for (int r = 0; r < OWN; ++r) {
      float m = largest[r], total = 0.0f;
      #pragma unroll
      for (int j = 0; j < SCORES; ++j) {
        const long p = p0 + part + 16 * j;
        scores[r][j] = p <= before + t0 + row + r && p < stop ? scores[r][j] * SCALE : SMALLEST;
        m = fmaxf(m, scores[r][j]);
      }
      #pragma unroll
      for (int offset = 8; offset > 0; offset /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, offset));
      #pragma unroll
      for (int j = 0; j < SCORES; ++j) {
        const float w = scores[r][j] > SMALLEST ? expf(scores[r][j] - m) : 0.0f;
        weights[(part + 16 * j) * (QUERIES + 4) + row + r] = w;
        total += w;
      }
      #pragma unroll
      for (int offset = 8; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
      const float correction = expf(largest[r] - m);
      largest[r] = m;
      sum[r] = sum[r] * correction + total;
      #pragma unroll
      for (int o = 0; o < ELEMENTS; ++o) own[r][o] *= correction;
    }
    __syncthreads();
    load_rows(cache, POSITIONS_AT_ONCE, values + p0 * HEAD_DIM, HEAD_DIM, stop - p0);
    __syncthreads();
    #pragma unroll 4
    for (int p = 0; p < POSITIONS_AT_ONCE; ++p) {
      #pragma unroll
      for (int r = 0; r < OWN; ++r) {
        const float w = weights[p * (QUERIES + 4) + row + r];
        #pragma unroll
        for (int o = 0; o < ELEMENTS; ++o) own[r][o] += w * cache[p * PITCH + part + 16 * o];
      }
    }
  }
  #pragma unroll
  for (int r = 0; r < OWN; ++r) {
    const long t = t0 + row + r, position = before + t;
    if (t >= n.q_len) continue;
    out_t* out = (out_t*)args.buffers[OUT] + at + (long)(row + r) * HEADS * HEAD_DIM;
    #pragma unroll
    for (int o = 0; o < ELEMENTS; ++o) {
      const int d = part + 16 * o;  // padding sees itself alone
      if (d >= HEAD_DIM) continue;
      store_value(out + d, position < first ? widen_value(values[position * HEAD_DIM + d]) : own[r][o] / sum[r]);
    }
  }
}
)";

// Queries of one head that a block takes.
int64_t queries_of_block(const Kernel& kernel, const AttentionKernel& k) {
  if (cuda_attention_on_tensor_cores(kernel, k)) return 16 * cuda_prefill_threads(kernel, k) / 32;
  return k.head_dim <= 64 ? 64 : k.head_dim <= 128 ? 32 : 16;
}

}  // namespace

// Half as many where there would be fewer blocks than multiprocessors.
int64_t cuda_prefill_threads(const Kernel& kernel, const AttentionKernel& k) {
  if (multiplies_by_warpgroups(kernel, k)) return warpgroup_prefill_threads(kernel, k);
  const Specialization dims = cuda_form_sizes(kernel);
  if (!cuda_attention_on_tensor_cores(kernel, k) || !dims.q_len) return kCudaThreads;
  const int64_t queries = 16 * kCudaThreads / 32;
  const int64_t tiles = (*dims.q_len + queries - 1) / queries;
  const int64_t blocks = dims.batch.value_or(1) * k.heads * tiles;
  return blocks < kCudaMultiprocessors ? kCudaThreads / 2 : kCudaThreads;
}

CudaLaunch cuda_prefill_launch(const Kernel& kernel, const AttentionKernel& k,
                               const DimValues& dims) {
  if (multiplies_by_warpgroups(kernel, k)) return warpgroup_prefill_launch(kernel, k, dims);
  const int64_t queries = queries_of_block(kernel, k);
  return {"assay_prefill", dims.batch * k.heads, (dims.q_len + queries - 1) / queries, 1,
          cuda_prefill_threads(kernel, k)};
}

std::string_view cuda_narrow_name(const Kernel& kernel, const AttentionKernel& k) {
  for (const ir::BufferId buffer : {k.keys, k.q}) {
    const DType dtype = kernel.buffers[buffer].dtype;
    if (dtype != DType::kF32) return dtype == DType::kF16 ? "f16" : "bf16";
  }
  return "bf16";
}

std::string cuda_prefill_text(const Kernel& kernel, const AttentionKernel& k) {
  const auto type_of = [&](ir::BufferId buffer) {
    return element_type(kernel.buffers[buffer].dtype, "unsigned short");
  };
  std::string text = fmt::format("\nnamespace of_prompts {{\ntypedef {} out_t;\n", type_of(k.out));
  if (!cuda_attention_on_tensor_cores(kernel, k)) {
    text += fmt::format("enum {{ QUERIES = {} }};\n", queries_of_block(kernel, k));
    return text + std::string(kPlain) + "}\n";
  }
  if (multiplies_by_warpgroups(kernel, k)) return text + warpgroup_prefill_text(kernel, k) + "}\n";
  text += fmt::format("enum {{ PREFILL_THREADS = {}, PREFILL_WARPS = PREFILL_THREADS / 32 }};\n",
                      cuda_prefill_threads(kernel, k));
  return text + std::string(kTensorCores) + "}\n";
}

}  // namespace assay::engine
