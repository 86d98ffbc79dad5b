// The begin of every CUDA kernel: element types, sums over warps and blocks; and the functions of
// those on tensor cores.
#include <fmt/format.h>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

// No header of CUDA's: NVRTC is found without them. Types of 16 bits are converted by the
// instructions for that.
constexpr std::string_view kPrelude = R"(
// From Hopper on, a kernel may begin while the one ahead of it runs: nothing that another kernel
// writes is read before the wait, and none of it by ld.global.nc, and nothing is written that one
// ahead may still read. Every kernel waits, so that all kernels ahead have ended when one gets past
// its own wait. Sizes, lengths and the like are no other kernel's: the one that fetches them comes
// first in a graph, and the second begins when it has ended. A step's last kernel counts lengths on for the next
// step, whose first one begins when it has ended.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_kernels_ahead() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// 16 bytes of a weight, which is read once. Not ld.global.nc: the assembler would move it behind
// the wait.
__device__ __forceinline__ uint4 load_once(const void* p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ float from_bf16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
__device__ __forceinline__ float from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ __forceinline__ unsigned short to_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ unsigned short to_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ int lane_of_thread() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_of_thread() { return threadIdx.x >> 5; }

__device__ __forceinline__ float warp_sum(float x) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}
// Over the block; the same value in every thread.
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float sums[WARPS];
  x = warp_sum(x);
  __syncthreads();  // what was read of an earlier call
  if (lane_of_thread() == 0) sums[warp_of_thread()] = x;
  __syncthreads();
  x = 0.0f;
  #pragma unroll
  for (int i = 0; i < WARPS; ++i) x += sums[i];
  return x;
}
// A value and its place in a row as one number, of which the largest is chosen: NaN, then the larger
// value, then the first place. No value's number is 0.
__device__ __forceinline__ unsigned long choice_of(float x, long i) {
  const unsigned bits = __float_as_uint(x + 0.0f);  // -0 becomes 0
  const unsigned order = x != x ? ~0u : bits ^ ((int)bits < 0 ? ~0u : 0x80000000u);
  return (unsigned long)order << 32 | ~(unsigned)i;
}
__device__ __forceinline__ long place_of(unsigned long choice) { return (long)~(unsigned)choice; }
__device__ __forceinline__ float value_of(unsigned long choice) {
  const unsigned order = (unsigned)(choice >> 32);
  return __uint_as_float(order >> 31 ? order ^ 0x80000000u : ~order);
}
__device__ __forceinline__ unsigned long larger_of(unsigned long x, unsigned long y) { return x > y ? x : y; }
// The largest over the block, in every thread.
__device__ __forceinline__ unsigned long block_choice(unsigned long x) {
  __shared__ unsigned long largest[WARPS];
  const unsigned upper = __reduce_max_sync(~0u, (unsigned)(x >> 32));
  const unsigned lower = __reduce_max_sync(~0u, (unsigned)(x >> 32) == upper ? (unsigned)x : 0u);
  __syncthreads();  // what was read of an earlier call
  if (lane_of_thread() == 0) largest[warp_of_thread()] = (unsigned long)upper << 32 | lower;
  __syncthreads();
  x = largest[0];
  #pragma unroll
  for (int w = 1; w < WARPS; ++w) x = larger_of(x, largest[w]);
  return x;
}
// Counts so many blocks, or none, by one thread, and returns what was counted before. What a barrier has shown to this thread is
// shown to whoever sees the count.
__device__ __forceinline__ int count_blocks(int* counter, int blocks) {
  int before;
  asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(blocks) : "memory");
  return before;
}
// True if all other blocks of this counter have been here; what they wrote before is seen then.
__device__ __forceinline__ bool is_last(int* counter, int blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = count_blocks(counter, 1) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  return last;
}
// Words ahead of Args::workspace, where blocks leave floats for another one. All are zeros between launches, and a float that has
// come isn't, because 0 is left as -0: each word says by itself that it is there, without a counter or a fence, which take longer
// than the words do. The last of the blocks takes, in the order of their numbers: that is the order in which they begin, so that
// it waits for none that might have to wait for it.
__device__ __forceinline__ float as_left(float x) { return x == 0.0f ? -0.0f : x; }
__device__ __forceinline__ void leave(float* word, float x) {
  asm volatile("st.volatile.global.f32 [%0], %1;" :: "l"(word), "f"(as_left(x)) : "memory");
}
__device__ __forceinline__ void leave(float4* words, const float4& v) {
  asm volatile("st.volatile.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(words), "f"(as_left(v.x)), "f"(as_left(v.y)), "f"(as_left(v.z)), "f"(as_left(v.w)) : "memory");
}
__device__ __forceinline__ float look(const float* word) {
  float x;
  asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(x) : "l"(word) : "memory");
  return x;
}
__device__ __forceinline__ float4 look(const float4* words) {
  float4 v;
  asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(words) : "memory");
  return v;
}
__device__ __forceinline__ bool has_come(float word) { return __float_as_uint(word) != 0; }
__device__ __forceinline__ bool has_come(const float4& v) {
  return has_come(v.x) && has_come(v.y) && has_come(v.z) && has_come(v.w);
}
// N words, by their place, once all have come; they are zeros again.
template <int N, class F>
__device__ __forceinline__ void take(const F& place, float (&found)[N]) {
  bool all;
  do {
    all = true;
    #pragma unroll
    for (int i = 0; i < N; ++i) found[i] = look(place(i));
    #pragma unroll
    for (int i = 0; i < N; ++i) all = all && has_come(found[i]);
  } while (!all);
  #pragma unroll
  for (int i = 0; i < N; ++i) *place(i) = 0.0f;
}
// The sum of N such words, `pitch` apart, in their order.
template <int N>
__device__ __forceinline__ float take_sum(float* words, long pitch) {
  float found[N], total = 0.0f;
  take([&](int i) { return words + i * pitch; }, found);
  #pragma unroll
  for (int i = 0; i < N; ++i) total += found[i];
  return total;
}
)";

constexpr std::string_view kWiden = R"(
__device__ __forceinline__ void widen(const uint4& v, float (&out)[4]) {
  out[0] = __uint_as_float(v.x), out[1] = __uint_as_float(v.y);
  out[2] = __uint_as_float(v.z), out[3] = __uint_as_float(v.w);
}
__device__ __forceinline__ void widen(const uint4& v, float (&out)[8]) {
  const unsigned words[4] = {v.x, v.y, v.z, v.w};
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = from_half_word((unsigned short)(words[i] & 0xffffu));
    out[2 * i + 1] = from_half_word((unsigned short)(words[i] >> 16));
  }
}
)";

constexpr std::string_view kTensorCores = R"(
__device__ __forceinline__ unsigned pack(float low, float high) {
  unsigned both;
  asm("cvt.rn." ELEMENT_TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." ELEMENT_TYPE "." ELEMENT_TYPE ".f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)";

}  // namespace

std::string cuda_widen_text(DType dtype) {
  return fmt::format(
             "\n__device__ __forceinline__ float from_half_word(unsigned short x) {{ return {}(x); "
             "}}",
             dtype == DType::kF16 ? "from_f16" : "from_bf16") +
         std::string(kWiden);
}

std::string cuda_tensor_text(std::string_view element) {
  return fmt::format("\n#define ELEMENT_TYPE \"{}\"\n{}", element, kTensorCores);
}

std::string cuda_bounds_text(std::string_view launch_bounds, int64_t registers) {
  if (registers == 0) {
    return fmt::format("#define BOUNDS __launch_bounds__({})\n", launch_bounds);
  }
  return fmt::format(
      "#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204\n"
      "#define BOUNDS __maxnreg__({})\n"
      "#else\n"
      "#define BOUNDS __launch_bounds__({}, 1)\n"
      "#endif\n",
      registers, kCudaRegisters / registers / 32 * 32);
}

std::string cuda_prelude(int64_t threads) {
  return fmt::format("\nenum {{ THREADS = {}, WARPS = THREADS / 32 }};\n{}", threads, kPrelude);
}

}  // namespace assay::engine
