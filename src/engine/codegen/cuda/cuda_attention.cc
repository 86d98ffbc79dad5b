// Attention on CUDA as a source template: decoding cuts a head's positions into ranges and puts
// them together in a second kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr std::string_view kShared = R"(
enum { GROUP = HEADS / KV_HEADS };
#define SMALLEST -1e30f

struct Sizes { long batch, q_len, kv_len, capacity; };
__device__ __forceinline__ const float* head_of(const void* cache, long b, long head, long capacity) {
  return (const float*)cache + (b * KV_HEADS + head) * capacity * HEAD_DIM;
}
__device__ __forceinline__ long splits_of(long capacity) {
  const long n = (capacity + SPLIT_POSITIONS - 1) / SPLIT_POSITIONS;
  return n < 1 ? 1 : n > MOST_SPLITS ? MOST_SPLITS : n;
}
)";

// One query of all heads that share keys, over one range of positions. Scores by warps, a lane
// holding every 32nd element of a head; the weighted values by threads, one element each. What is
// left in the workspace for a head and range: values [HEAD_DIM] not yet divided by the sum, the
// largest score, the sum.
constexpr std::string_view kDecode = R"(
enum { POSITIONS = 64, LANE_ELEMENTS = (HEAD_DIM + 31) / 32,
       OWN = (GROUP * HEAD_DIM + THREADS - 1) / THREADS };

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_decode(const Args args) {
  __shared__ float q[GROUP * HEAD_DIM], scores[GROUP * POSITIONS];
  __shared__ float largest[GROUP], sum[GROUP], correction[GROUP];
  let_next_begin();
  wait_for_kernels_ahead();
  const Sizes n = sizes_of(args);
  const long b = blockIdx.x / KV_HEADS, kv = blockIdx.x % KV_HEADS, step = blockIdx.z;
  const long splits = splits_of(n.capacity), split = blockIdx.y;
  const long first = ((const int*)args.buffers[PAD])[b], past = n.kv_len - n.q_len + step + 1;
  const long chunk = past > first ? (past - first + splits - 1) / splits : 0;
  const long begin = first + split * chunk, stop = begin + chunk < past ? begin + chunk : past;
  const long head = (b * n.q_len + step) * HEADS + kv * GROUP;
  const float* keys = head_of(args.buffers[KEYS], b, kv, n.capacity);
  const float* values = head_of(args.buffers[VALUES], b, kv, n.capacity);
  const int lane = lane_of_thread(), warp = warp_of_thread();
  for (int i = threadIdx.x; i < GROUP * HEAD_DIM; i += THREADS) {
    q[i] = ((const float*)args.buffers[Q])[head * HEAD_DIM + i];
  }
  for (int g = threadIdx.x; g < GROUP; g += THREADS) largest[g] = SMALLEST, sum[g] = 0.0f;
  float own[OWN] = {};
  __syncthreads();
  for (long p0 = begin; p0 < stop; p0 += POSITIONS) {
    const int count = stop - p0 < POSITIONS ? (int)(stop - p0) : POSITIONS;
    for (int p = warp; p < count; p += WARPS) {
      const float* key = keys + (p0 + p) * HEAD_DIM;
      float k[LANE_ELEMENTS];
      #pragma unroll
      for (int j = 0; j < LANE_ELEMENTS; ++j) {
        k[j] = lane + 32 * j < HEAD_DIM ? key[lane + 32 * j] : 0.0f;
      }
      for (int g = 0; g < GROUP; ++g) {
        float dot = 0.0f;
        #pragma unroll
        for (int j = 0; j < LANE_ELEMENTS; ++j) {
          if (lane + 32 * j < HEAD_DIM) dot += k[j] * q[g * HEAD_DIM + lane + 32 * j];
        }
        dot = warp_sum(dot);
        if (lane == 0) scores[g * POSITIONS + p] = dot * SCALE;
      }
    }
    __syncthreads();
    for (int g = warp; g < GROUP; g += WARPS) {
      float m = largest[g];
      for (int p = lane; p < count; p += 32) m = fmaxf(m, scores[g * POSITIONS + p]);
      m = warp_max(m);
      float total = 0.0f;
      for (int p = lane; p < count; p += 32) {
        const float w = expf(scores[g * POSITIONS + p] - m);
        scores[g * POSITIONS + p] = w;
        total += w;
      }
      total = warp_sum(total);
      if (lane == 0) {
        correction[g] = expf(largest[g] - m);
        sum[g] = sum[g] * correction[g] + total;
        largest[g] = m;
      }
    }
    __syncthreads();
    #pragma unroll
    for (int o = 0; o < OWN; ++o) {
      const int i = threadIdx.x + o * THREADS, g = i / HEAD_DIM;
      if (i >= GROUP * HEAD_DIM) continue;
      float v = own[o] * correction[g];
      #pragma unroll 4
      for (int p = 0; p < count; ++p) {
        v += scores[g * POSITIONS + p] * values[(p0 + p) * HEAD_DIM + i % HEAD_DIM];
      }
      own[o] = v;
    }
    __syncthreads();
  }
  float* parts = args.workspace;
  #pragma unroll
  for (int o = 0; o < OWN; ++o) {
    const int i = threadIdx.x + o * THREADS;
    if (i >= GROUP * HEAD_DIM) continue;
    parts[((head + i / HEAD_DIM) * splits + split) * (HEAD_DIM + 2) + i % HEAD_DIM] = own[o];
  }
  for (int g = threadIdx.x; g < GROUP; g += THREADS) {
    float* state = parts + ((head + g) * splits + split) * (HEAD_DIM + 2) + HEAD_DIM;
    state[0] = largest[g];
    state[1] = sum[g];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_combine(const Args args) {
  let_next_begin();
  wait_for_kernels_ahead();
  const Sizes n = sizes_of(args);
  const long b = blockIdx.x / HEADS, head = blockIdx.x % HEADS, step = blockIdx.y;
  const long position = n.kv_len - n.q_len + step, splits = splits_of(n.capacity);
  const long row = (b * n.q_len + step) * HEADS + head;
  float* out = (float*)args.buffers[OUT] + row * HEAD_DIM;
  if (position < ((const int*)args.buffers[PAD])[b]) {  // padding sees itself alone
    const float* own = head_of(args.buffers[VALUES], b, head / GROUP, n.capacity) + position * HEAD_DIM;
    for (int d = threadIdx.x; d < HEAD_DIM; d += THREADS) out[d] = own[d];
    return;
  }
  const float* parts = args.workspace + row * splits * (HEAD_DIM + 2);
  float m = SMALLEST, sum = 0.0f;
  for (long s = 0; s < splits; ++s) m = fmaxf(m, parts[s * (HEAD_DIM + 2) + HEAD_DIM]);
  for (long s = 0; s < splits; ++s) {
    const float* state = parts + s * (HEAD_DIM + 2) + HEAD_DIM;
    sum += state[1] * expf(state[0] - m);
  }
  for (int d = threadIdx.x; d < HEAD_DIM; d += THREADS) {
    float v = 0.0f;
    for (long s = 0; s < splits; ++s) {
      const float* part = parts + s * (HEAD_DIM + 2);
      v += part[d] * expf(part[HEAD_DIM] - m);
    }
    out[d] = v / sum;
  }
}
)";

constexpr int64_t kSplitPositions = 128, kMostSplits = 64;

std::string sizes_text(const Kernel& kernel) {
  return "__device__ __forceinline__ Sizes sizes_of(const Args& args) {\n" +
         cuda_arguments(kernel) + "  return {batch, q_len, kv_len, capacity};\n}\n";
}

}  // namespace

int64_t cuda_attention_splits(int64_t capacity) {
  return std::clamp<int64_t>((capacity + kSplitPositions - 1) / kSplitPositions, 1, kMostSplits);
}

std::string print_cuda_attention(const Kernel& kernel, const AttentionKernel& k) {
  std::string text = cuda_prelude();
  text += cuda_args_struct(kernel);
  text += fmt::format(
      "enum {{ HEADS = {}, KV_HEADS = {}, HEAD_DIM = {}, Q = {}, KEYS = {}, VALUES = {}, PAD = {}, "
      "OUT = {},\n       SPLIT_POSITIONS = {}, MOST_SPLITS = {} }};\n"
      "#define SCALE {:.9g}f\n",
      k.heads, k.kv_heads, k.head_dim, k.q, k.keys, k.values, k.pad, k.out, kSplitPositions,
      kMostSplits, 1.0 / std::sqrt(static_cast<double>(k.head_dim)));
  text += kShared;
  text += sizes_text(kernel);
  text += kDecode;
  text += cuda_prefill_text(kernel, k);
  return text;
}

}  // namespace assay::engine
