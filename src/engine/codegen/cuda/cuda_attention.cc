// Attention on CUDA as a source template: decoding cuts a head's positions into ranges, a block
// each.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/print_c.h"

namespace assay::engine {
namespace {

constexpr std::string_view kShared = R"(
enum { GROUP = HEADS / KV_HEADS };
// Blocks that a multiprocessor must have registers for. For Blackwell the compiler wants a few more
// than the bounds leave, and would spill.
#if __CUDA_ARCH__ >= 1000
#define AT_LEAST(blocks) 1
#else
#define AT_LEAST(blocks) (blocks)
#endif
#define SMALLEST -1e30f
#define MISSING -3e38f  // its weight is 0 beside SMALLEST too

__device__ __forceinline__ float widen_value(float x) { return x; }
__device__ __forceinline__ float widen_value(unsigned short x) { return FROM_NARROW(x); }
__device__ __forceinline__ void store_value(float* p, float x) { *p = x; }
__device__ __forceinline__ void store_value(unsigned short* p, float x) { *p = TO_RESULT(x); }
__device__ __forceinline__ unsigned pack_result(float low, float high) {
  unsigned both;
  asm("cvt.rn." RESULT_TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

struct Sizes { long batch, q_len, capacity; };
__device__ __forceinline__ const cache_t* head_of(const void* cache, long row, long head, long capacity) {
  return (const cache_t*)cache + (row * KV_HEADS + head) * capacity * HEAD_DIM;
}
)";

// Instructions of attention on tensor cores that products don't have.
constexpr std::string_view kMatrices = R"(
#define SCALE_IN_BASE_2 (SCALE * 1.44269504f)
__device__ __forceinline__ float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Addresses in shared memory are numbers of bytes here: half the registers of pointers.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_matrices_turned(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

// 16 bytes of a tile; zeros where `exists` doesn't hold, because what lies there is nobody's.
__device__ __forceinline__ void load_piece(unsigned to, const unsigned short* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
               "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}
)";

// One query of up to PIECE heads that share keys, over one range of positions. LANES
// neighbouring threads share a position, each PER of its elements; each such slot has a softmax of
// its own, corrected as larger scores come, AHEAD positions at a time, and slots, warps and blocks
// are put together at the end. Positions that the kernel ahead doesn't write, all but the newest,
// are asked for before the wait. The workspace has for a head and range: values [HEAD_DIM] not yet
// divided by the sum, the largest score, the sum; the block of a head that comes last puts them
// together. One row has few blocks, several rows more than there are multiprocessors: two of 256
// threads have registers TOGETHER.
constexpr std::string_view kDecode = R"(
enum { SLOTS = DECODE_THREADS / LANES };

// Elements [d, d + PER) of a position as they lie in memory, zeros behind the last: what has been
// asked for is widened when it is used, not waited for.
template <typename T>
struct Part {
  enum { IN_WORD = 4 / sizeof(T) };
  unsigned words[PER / IN_WORD];
};
__device__ __forceinline__ float element(const Part<float>& part, int i) {
  return __uint_as_float(part.words[i]);
}
__device__ __forceinline__ float element(const Part<unsigned short>& part, int i) {
  return widen_value((unsigned short)(part.words[i / 2] >> i % 2 * 16));
}
__device__ __forceinline__ unsigned bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned bits_of(unsigned short x) { return x; }
template <typename T>
__device__ __forceinline__ void load_part(const T* p, int d, Part<T>& part) {
  enum { IN_WORD = Part<T>::IN_WORD };
  if (HEAD_DIM % PER == 0) {
    #pragma unroll
    for (int i = 0; i < PER / IN_WORD; i += 4) {
      const uint4 v = *(const uint4*)(p + d + i * IN_WORD);
      part.words[i] = v.x, part.words[i + 1] = v.y, part.words[i + 2] = v.z, part.words[i + 3] = v.w;
    }
  } else {
    #pragma unroll
    for (int i = 0; i < PER / IN_WORD; ++i) part.words[i] = 0;
    #pragma unroll
    for (int i = 0; i < PER; ++i) {
      if (d + i < HEAD_DIM) part.words[i / IN_WORD] |= bits_of(p[d + i]) << i % IN_WORD * 16;
    }
  }
}
// Those of the AHEAD positions from `p0` of this slot that are in [from, to).
__device__ __forceinline__ void fetch(const cache_t* keys, const cache_t* values, long p0, long from, long to,
                                      int slot, int d, Part<cache_t> (&k)[AHEAD], Part<cache_t> (&v)[AHEAD]) {
  #pragma unroll
  for (int a = 0; a < AHEAD; ++a) {
    const long p = p0 + slot + a * SLOTS;
    if (p < from || p >= to || d >= HEAD_DIM) continue;
    load_part(keys + p * HEAD_DIM, d, k[a]);
    load_part(values + p * HEAD_DIM, d, v[a]);
  }
}

extern "C" __global__ void __launch_bounds__(DECODE_THREADS, AT_LEAST(TOGETHER)) assay_decode(const Args args) {
  __shared__ float merged[DECODE_WARPS][PIECE][HEAD_DIM], states[DECODE_WARPS][PIECE][2];
  let_next_begin();
  const Sizes n = sizes_of(args);
  const long piece = blockIdx.x % PIECES, kv = blockIdx.x / PIECES % KV_HEADS;
  const long b = blockIdx.x / (PIECES * KV_HEADS), step = blockIdx.z, split = blockIdx.y;
  const long splits = gridDim.y, newest = ((const int*)args.buffers[LENGTHS])[b], past = newest + step + 1;
  const long first = ((const int*)args.buffers[PAD])[b];
  const long chunk = past > first ? (past - first + splits - 1) / splits : 0;
  const long begin = first + split * chunk, stop = begin + chunk < past ? begin + chunk : past;
  const long head = (b * n.q_len + step) * HEADS + kv * GROUP + piece * PIECE;
  const int heads = GROUP - piece * PIECE < PIECE ? GROUP - (int)piece * PIECE : PIECE;
  const cache_t* keys = head_of(args.buffers[KEYS], CACHE_ROW(args, b), kv, n.capacity);
  const cache_t* values = head_of(args.buffers[VALUES], CACHE_ROW(args, b), kv, n.capacity);
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const int slot = threadIdx.x / LANES, d = threadIdx.x % LANES * PER;
  Part<cache_t> k[AHEAD] = {}, v[AHEAD] = {};
  fetch(keys, values, begin, begin, stop < newest ? stop : newest, slot, d, k, v);
  wait_for_kernels_ahead();
  fetch(keys, values, begin, newest, stop, slot, d, k, v);
  result_t* out = (result_t*)args.buffers[OUT] + head * HEAD_DIM;
  if (past <= first) {  // padding sees itself alone
    for (int i = threadIdx.x; split == 0 && i < heads * HEAD_DIM; i += DECODE_THREADS) {
      store_value(out + i, widen_value(values[(past - 1) * HEAD_DIM + i % HEAD_DIM]));
    }
    return;
  }
  Part<float> q[PIECE] = {};
  float own[PIECE][PER] = {}, largest[PIECE], sum[PIECE] = {};
  #pragma unroll
  for (int g = 0; g < PIECE; ++g) {
    largest[g] = SMALLEST;
    if (g < heads && d < HEAD_DIM) load_part((const float*)args.buffers[Q] + (head + g) * HEAD_DIM, d, q[g]);
  }
  for (long p0 = begin; p0 < stop; p0 += SLOTS * AHEAD) {
    if (p0 > begin) fetch(keys, values, p0, p0, stop, slot, d, k, v);
    #pragma unroll
    for (int g = 0; g < PIECE; ++g) {
      float score[AHEAD], m = largest[g];
      #pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        score[a] = 0.0f;
        #pragma unroll
        for (int i = 0; i < PER; ++i) score[a] += element(q[g], i) * element(k[a], i);
      }
      #pragma unroll
      for (int offset = LANES / 2; offset > 0; offset /= 2) {
        #pragma unroll
        for (int a = 0; a < AHEAD; ++a) score[a] += __shfl_xor_sync(~0u, score[a], offset);
      }
      #pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        score[a] = p0 + slot + a * SLOTS < stop ? score[a] * SCALE : MISSING;
        m = fmaxf(m, score[a]);
      }
      const float correction = expf(largest[g] - m);
      largest[g] = m;
      sum[g] *= correction;
      #pragma unroll
      for (int i = 0; i < PER; ++i) own[g][i] *= correction;
      #pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const float w = expf(score[a] - m);
        sum[g] += w;
        #pragma unroll
        for (int i = 0; i < PER; ++i) own[g][i] += w * element(v[a], i);
      }
    }
  }
  #pragma unroll
  for (int g = 0; g < PIECE; ++g) {
    float m = largest[g];
    #pragma unroll
    for (int offset = LANES; offset < 32; offset *= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, offset));
    const float scale = expf(largest[g] - m);
    largest[g] = m;
    sum[g] *= scale;
    #pragma unroll
    for (int i = 0; i < PER; ++i) own[g][i] *= scale;
    #pragma unroll
    for (int offset = LANES; offset < 32; offset *= 2) {
      sum[g] += __shfl_xor_sync(~0u, sum[g], offset);
      #pragma unroll
      for (int i = 0; i < PER; ++i) own[g][i] += __shfl_xor_sync(~0u, own[g][i], offset);
    }
    if (lane >= LANES) continue;
    #pragma unroll
    for (int i = 0; i < PER; ++i) {
      if (d + i < HEAD_DIM) merged[warp][g][d + i] = own[g][i];
    }
    if (lane == 0) states[warp][g][0] = largest[g], states[warp][g][1] = sum[g];
  }
  __syncthreads();
  float* parts = args.workspace + COUNTERS + head * splits * (HEAD_DIM + 2);
  for (int i = threadIdx.x; i < heads * HEAD_DIM; i += DECODE_THREADS) {
    const int g = i / HEAD_DIM, at = i % HEAD_DIM;
    float m = SMALLEST, total = 0.0f, value = 0.0f;
    #pragma unroll
    for (int w = 0; w < DECODE_WARPS; ++w) m = fmaxf(m, states[w][g][0]);
    #pragma unroll
    for (int w = 0; w < DECODE_WARPS; ++w) {
      const float scale = expf(states[w][g][0] - m);
      total += states[w][g][1] * scale;
      value += merged[w][g][at] * scale;
    }
    if (splits == 1) {
      store_value(out + i, value / total);
      continue;
    }
    float* part = parts + (g * splits + split) * (HEAD_DIM + 2);
    part[at] = value;
    if (at == 0) part[HEAD_DIM] = m, part[HEAD_DIM + 1] = total;
  }
  const long counter = (b * n.q_len + step) * KV_HEADS * PIECES + kv * PIECES + piece;
  if (splits == 1 || !is_last((int*)args.workspace + counter, (int)splits)) return;
  for (int i = threadIdx.x; i < heads * HEAD_DIM; i += DECODE_THREADS) {
    const float* part = parts + i / HEAD_DIM * splits * (HEAD_DIM + 2);
    float m = SMALLEST, total = 0.0f, value = 0.0f;
    enum { AT_ONCE = 8 };  // ranges that are asked for at a time
    for (long s0 = 0; s0 < splits; s0 += AT_ONCE) {
      float largest_of[AT_ONCE], sum_of[AT_ONCE], value_of[AT_ONCE], most = m;
      #pragma unroll
      for (int s = 0; s < AT_ONCE; ++s) {
        const float* of = part + (s0 + s < splits ? s0 + s : s0) * (HEAD_DIM + 2);
        largest_of[s] = __ldcg(of + HEAD_DIM), sum_of[s] = __ldcg(of + HEAD_DIM + 1);
        value_of[s] = __ldcg(of + i % HEAD_DIM);
      }
      #pragma unroll
      for (int s = 0; s < AT_ONCE; ++s) most = fmaxf(most, largest_of[s]);
      const float before = expf(m - most);
      total *= before, value *= before, m = most;
      #pragma unroll
      for (int s = 0; s < AT_ONCE; ++s) {
        const float scale = s0 + s < splits ? expf(largest_of[s] - m) : 0.0f;
        total += sum_of[s] * scale, value += value_of[s] * scale;
      }
    }
    store_value(out + i, value / total);
  }
}
)";

constexpr int64_t kMostSplits = 64, kElements = 8, kMostPiece = 4;

// A block takes positions 32 at a time, for heads of any size. If every head has keys of its own
// there are so many blocks that larger ones are slower.
bool wide(const AttentionKernel& k) {
  return k.head_dim > 64 && k.heads > k.kv_heads;
}

// Pieces that the heads which share keys are cut into, a block each.
int64_t pieces_of(const Kernel& kernel, const AttentionKernel& k) {
  if (cuda_attention_on_tensor_cores(kernel, k)) return cuda_steps_pieces(k);
  return (k.heads / k.kv_heads + kMostPiece - 1) / kMostPiece;
}

std::string sizes_text(const Kernel& kernel) {
  return "__device__ __forceinline__ Sizes sizes_of(const Args& args) {\n" +
         cuda_arguments(kernel) + "  return {batch, q_len, capacity};\n}\n";
}

}  // namespace

bool cuda_attention_on_tensor_cores(const Kernel& kernel, const AttentionKernel& k) {
  constexpr int64_t kMostHeadDim = 128;  // more elements don't fit registers
  return kernel.buffers[k.keys].dtype != DType::kF32 && k.head_dim % 16 == 0 &&
         k.head_dim <= kMostHeadDim;
}

int64_t cuda_attention_heads(const Kernel& kernel, const AttentionKernel& k) {
  return k.kv_heads * pieces_of(kernel, k);
}

int64_t cuda_decode_threads(const Kernel& kernel, const AttentionKernel& k) {
  if (cuda_attention_on_tensor_cores(kernel, k)) return cuda_steps_threads(kernel, k);
  return wide(k) ? 512 : kCudaThreads;
}

int64_t cuda_decode_shared_bytes(const Kernel& kernel, const AttentionKernel& k) {
  return cuda_attention_on_tensor_cores(kernel, k) ? cuda_steps_shared_bytes(kernel, k) : 0;
}

int64_t cuda_attention_splits(const Kernel& kernel, const AttentionKernel& k, const DimValues& dims,
                              int64_t capacity) {
  const bool tensor = cuda_attention_on_tensor_cores(kernel, k);
  const int64_t wanted = tensor ? cuda_steps_blocks(kernel, k) : 2 * kCudaMultiprocessors;
  const int64_t blocks = dims.batch * dims.q_len * cuda_attention_heads(kernel, k);
  if (blocks > kCudaCounters) return 1;
  int64_t positions = 32;  // of a range, at least
  if (tensor) {
    // Putting ranges together takes as long as a block's 300 positions; the more blocks there are,
    // the less does a range gain.
    if (capacity <= kCudaUnsplit) return 1;
    positions = std::clamp<int64_t>(16 * blocks, 128, kCudaUnsplit);
  }
  const int64_t most = std::clamp<int64_t>(wanted / blocks, 1, kMostSplits);
  // The nearest number: for one position more than fits, a range more is slower than longer ranges.
  return std::clamp<int64_t>((capacity + positions / 2) / positions, 1, most);
}

int64_t cuda_attention_parts(const Kernel& kernel, const AttentionKernel& k, const DimValues& dims,
                             int64_t capacity) {
  const int64_t group = k.heads / k.kv_heads, pieces = pieces_of(kernel, k);
  constexpr int64_t kOfRange =
      4;  // its sum and largest score; the next range's are aligned as well
  return dims.batch * dims.q_len * k.kv_heads * pieces * ((group + pieces - 1) / pieces) *
         cuda_attention_splits(kernel, k, dims, capacity) * (k.head_dim + kOfRange);
}

std::string print_cuda_attention(const Kernel& kernel, const AttentionKernel& k) {
  std::string text = cuda_prelude();
  text += cuda_args_struct(kernel);
  const bool tensor = cuda_attention_on_tensor_cores(kernel, k);
  const int64_t group = k.heads / k.kv_heads, pieces = pieces_of(kernel, k);
  const DType out = kernel.buffers[k.out].dtype;
  const std::string_view result = out == DType::kF32   ? cuda_narrow_name(kernel, k)
                                  : out == DType::kF16 ? "f16"
                                                       : "bf16";
  text += fmt::format(
      "enum {{ HEADS = {}, KV_HEADS = {}, HEAD_DIM = {}, Q = {}, KEYS = {}, VALUES = {}, LENGTHS = "
      "{}, PAD = {}, OUT = {},\n       PIECES = {}, PIECE = {}, COUNTERS = {}, DECODE_THREADS = "
      "{}, "
      "DECODE_WARPS = DECODE_THREADS / 32 }};\n"
      "#define SCALE {:.9g}f\ntypedef {} cache_t;\ntypedef {} query_t;\ntypedef {} result_t;\n"
      "#define FROM_NARROW from_{}\n#define TO_RESULT to_{}\n#define RESULT_TYPE \"{}\"\n",
      k.heads, k.kv_heads, k.head_dim, k.q, k.keys, k.values, k.lengths, k.pad, k.out, pieces,
      (group + pieces - 1) / pieces, kCudaCounters, cuda_decode_threads(kernel, k),
      1.0 / std::sqrt(static_cast<double>(k.head_dim)),
      element_type(kernel.buffers[k.keys].dtype, "unsigned short"),
      element_type(kernel.buffers[k.q].dtype, "unsigned short"),
      element_type(kernel.buffers[k.out].dtype, "unsigned short"), cuda_narrow_name(kernel, k),
      result, result);
  text += k.slots ? fmt::format("#define CACHE_ROW(args, b) ((const int*)(args).buffers[{}])[b]\n",
                                *k.slots)
                  : "#define CACHE_ROW(args, b) (b)\n";
  text += kShared;
  text += sizes_text(kernel);
  if (tensor) {
    text += cuda_tensor_text(cuda_narrow_name(kernel, k));
    text += kMatrices;
    text += cuda_steps_text(kernel, k);
  } else {
    text += fmt::format(
        "\nenum {{ PER = {}, LANES = {}, TOGETHER = {}, AHEAD = {} }};\n", kElements,
        std::bit_ceil(static_cast<uint64_t>((k.head_dim + kElements - 1) / kElements)),
        cuda_form_sizes(kernel).batch.value_or(1) > 1 && !wide(k) ? 2 : 1, wide(k) ? 1 : 2);
    text += kDecode;
  }
  text += cuda_prefill_text(kernel, k);
  return text;
}

}  // namespace assay::engine
