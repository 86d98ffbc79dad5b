// Types and functions for a printed CUDA kernel that is compiled for the processor (simt.h).
// Included ahead of each kernel, whose inline PTX has become calls ptx_OPCODE(operands...), dots
// and colons underscores.
#pragma once

// The library's functions by themselves: its headers took more of the compiler's time than a
// kernel.
using size_t = decltype(sizeof 0);
extern "C" {
void* memcpy(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
float erfcf(float) noexcept;
float fabsf(float) noexcept;
float exp2f(float) noexcept;
float expf(float) noexcept;
float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float sqrtf(float) noexcept;
int dprintf(int, const char*, ...);
void abort() noexcept __attribute__((noreturn));
}

struct SimtIndex {
  unsigned x, y, z;
};
// One for each module; the runner keeps it up to date.
struct SimtState {
  SimtIndex thread, block, grid, size;
  unsigned rank;  // of the block in its cluster
  void (*sync_block)();
  void (*sync_cluster)();
  // Where another block of the cluster has what lies in shared memory here.
  char* (*in_block)(unsigned number, char* here);
  // Waits for all threads of the warp that haven't ended, each of which brings `bytes` bytes:
  // [32][kSimtBytes], valid until the warp meets next.
  const char* (*meet)(const void* mine, unsigned long bytes);
  // Lets other threads go on, for one that waits for what they do.
  void (*yield)();
};
enum { kSimtBytes = 64, kSimtThreads = 1024, kSimtCluster = 4, kSimtDynamicBytes = 227 * 1024 };
// One for each kernel of a module.
struct SimtEntry {
  void (*run)(const void* argument);
  unsigned long argument_bytes;
  SimtState** state;
  char *shared_begin, *shared_end;
  unsigned cluster;  // blocks, along y
  unsigned most_shared = 48 * 1024;
};
static SimtState* simt_state;
static char simt_origin;  // of addresses in shared memory
extern "C" {
extern char __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
}

#define threadIdx (simt_state->thread)
#define blockIdx (simt_state->block)
#define gridDim (simt_state->grid)
#define blockDim (simt_state->size)
#define __global__
// Functions and variables are this module's alone, and so is the memory that a block shares in it.
#define __device__ static
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("simt_shared")))

struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

template <typename To, typename From>
inline To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
// Byte i of the result is byte `select >> 4 i & 7` of the two words.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned select) {
  const unsigned long long both = (unsigned long long)high << 32 | low;
  unsigned bytes = 0;
  for (int i = 0; i < 4; ++i)
    bytes |= (unsigned)(both >> (select >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return bytes;
}
// To within two units in the last place on a GPU.
inline float __fdividef(float x, float y) {
  return x / y;
}
// Rounded by themselves, as here everything is.
inline double __dadd_rn(double x, double y) {
  return x + y;
}
inline double __dmul_rn(double x, double y) {
  return x * y;
}
inline double __ddiv_rn(double x, double y) {
  return x / y;
}
inline double __longlong_as_double(long long x) {
  return simt_bits<double>(x);
}
inline long long __double_as_longlong(double x) {
  return simt_bits<long long>(x);
}
inline float __uint_as_float(unsigned x) {
  return simt_bits<float>(x);
}
inline unsigned __float_as_uint(float x) {
  return simt_bits<unsigned>(x);
}
inline float __int_as_float(int x) {
  return simt_bits<float>(x);
}
inline int __float_as_int(float x) {
  return simt_bits<int>(x);
}
template <typename T>
inline T __ldcg(const T* p) {
  return *p;
}
template <typename T>
inline T __ldcs(const T* p) {
  return *p;
}

inline void __syncthreads() {
  simt_state->sync_block();
}
inline void __syncwarp(unsigned = ~0u) {
  simt_state->meet("", 1);
}
inline void __threadfence() {}
inline int simt_lane() {
  return (int)(threadIdx.x & 31);
}
template <typename T>
inline T simt_of_lane(const char* all, int lane) {
  T value;
  memcpy(&value, all + lane * kSimtBytes, sizeof value);
  return value;
}
template <typename T>
inline T __shfl_sync(unsigned, T value, int lane) {
  return simt_of_lane<T>(simt_state->meet(&value, sizeof value), lane & 31);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return __shfl_sync(mask, value, simt_lane() ^ lanes);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const unsigned other = __shfl_xor_sync(mask, value, lanes);
    value = other > value ? other : value;
  }
  return value;
}
template <typename T>
inline T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}

static void ptx_atom_add_acq_rel_gpu_global_s32(int& before, int* to, int value) {
  before = atomicAdd(to, value);
}

inline size_t __cvta_generic_to_shared(const void* p) {
  return (unsigned)((const char*)p - &simt_origin);
}
inline char* simt_shared(unsigned address) {
  return &simt_origin + (int)address;
}

inline float simt_f16(unsigned short x) {
  return (float)simt_bits<_Float16>(x);
}
inline float simt_bf16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
inline void ptx_cvt_f32_f16(float& y, unsigned short x) {
  y = simt_f16(x);
}
inline void ptx_cvt_rn_f16_f32(unsigned short& y, float x) {
  y = simt_bits<unsigned short>((_Float16)x);
}
inline void ptx_cvt_rn_bf16_f32(unsigned short& y, float x) {
  const unsigned bits = __float_as_uint(x);
  y = x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <void (*NARROW)(unsigned short&, float)>
inline void simt_narrow_pair(unsigned& both, float high, float low) {
  unsigned short h, l;
  NARROW(h, high), NARROW(l, low);
  both = (unsigned)h << 16 | l;
}
constexpr auto ptx_cvt_rn_bf16x2_f32 = simt_narrow_pair<ptx_cvt_rn_bf16_f32>;
constexpr auto ptx_cvt_rn_f16x2_f32 = simt_narrow_pair<ptx_cvt_rn_f16_f32>;
// The halves of a word, and a word of one half.
inline void ptx_mov_b32(unsigned short& lower, unsigned short& upper, unsigned word) {
  lower = (unsigned short)word, upper = (unsigned short)(word >> 16);
}
inline void ptx_mov_b32(unsigned& word, unsigned short half) {
  word = half | (unsigned)half << 16;
}
// Each bit is that of the table at 4 a + 2 b + c.
inline void ptx_lop3_b32(unsigned& to, unsigned a, unsigned b, unsigned c, unsigned table) {
  to = 0;
  for (unsigned at = 0; at < 8; ++at) {
    const unsigned here = (at & 4 ? a : ~a) & (at & 2 ? b : ~b) & (at & 1 ? c : ~c);
    if (table >> at & 1) to |= here;
  }
}
// Pairs, each rounded once.
inline void ptx_fma_rn_bf16x2(unsigned& both, unsigned a, unsigned b, unsigned c) {
  unsigned short of[2];
  for (int i = 0; i < 2; ++i) {
    const int shift = 16 * i;
    ptx_cvt_rn_bf16_f32(of[i], fmaf(simt_bf16((unsigned short)(a >> shift)),
                                    simt_bf16((unsigned short)(b >> shift)),
                                    simt_bf16((unsigned short)(c >> shift))));
  }
  both = (unsigned)of[1] << 16 | of[0];
}
inline void ptx_fma_rn_f16x2(unsigned& both, unsigned a, unsigned b, unsigned c) {
  unsigned short of[2];
  for (int i = 0; i < 2; ++i) {
    const int shift = 16 * i;
    ptx_cvt_rn_f16_f32(
        of[i], fmaf(simt_f16((unsigned short)(a >> shift)), simt_f16((unsigned short)(b >> shift)),
                    simt_f16((unsigned short)(c >> shift))));
  }
  both = (unsigned)of[1] << 16 | of[0];
}
inline void ptx_mul_rn_f16x2(unsigned& both, unsigned a, unsigned b) {
  ptx_fma_rn_f16x2(both, a, b, 0x80008000u);  // -0 changes nothing
}
// e4m3 has four bits of exponent, biased by 7, three of mantissa, no infinity, and NaN as 0x7f. To
// it: the nearest, ties to even, what is too large the largest.
inline float simt_e4m3(unsigned char x) {
  const int exponent = x >> 3 & 15, mantissa = x & 7;
  if ((x & 0x7f) == 0x7f) return __uint_as_float(0x7fc00000);
  float size = exponent == 0 ? (float)mantissa / 512 : (float)(8 + mantissa) / 512;
  for (int e = 1; e < exponent; ++e) size *= 2;
  return x & 0x80 ? -size : size;
}
inline unsigned char simt_to_e4m3(float x) {
  const unsigned char sign = __float_as_uint(x) >> 31 ? 0x80 : 0;
  if (x != x) return sign | 0x7f;
  const float size = fabsf(x);
  if (size >= 448) return sign | 0x7e;
  float unit = 1.0f / 512;  // of the last place there
  while (size >= 16 * unit) unit *= 2;
  int units = (int)(size / unit);
  const float left = size / unit - (float)units;
  units += left > 0.5f || (left == 0.5f && units % 2 == 1);
  unsigned char code = 0;  // the first that is as large: codes are in the order of their sizes
  while (simt_e4m3(code) < (float)units * unit) ++code;
  return sign | code;
}
inline void ptx_cvt_rn_satfinite_e4m3x2_f32(unsigned short& both, float high, float low) {
  both = (unsigned short)(simt_to_e4m3(high) << 8 | simt_to_e4m3(low));
}
inline void ptx_ex2_approx_ftz_f32(float& y, float x) {
  y = exp2f(x);
}
// A word of zeros may be one that hasn't come: who looks lets others go on, and the run fails if
// nobody can.
inline void ptx_ld_volatile_global_f32(float& x, const float* from) {
  x = *from;
  if (x == 0.0f && !__builtin_signbit(x)) simt_state->yield();
}
inline void ptx_ld_volatile_global_v4_f32(float& x, float& y, float& z, float& w,
                                          const float4* from) {
  ptx_ld_volatile_global_f32(x, &from->x);
  ptx_ld_volatile_global_f32(y, &from->y);
  ptx_ld_volatile_global_f32(z, &from->z);
  ptx_ld_volatile_global_f32(w, &from->w);
}
inline void ptx_st_volatile_global_f32(float* to, float x) {
  *to = x;
}
inline void ptx_st_volatile_global_v4_f32(float4* to, float x, float y, float z, float w) {
  to->x = x, to->y = y, to->z = z, to->w = w;
}
inline void ptx_ld_global_L1__no_allocate_v4_u32(unsigned& x, unsigned& y, unsigned& z, unsigned& w,
                                                 const void* p) {
  const uint4 v = *(const uint4*)p;
  x = v.x, y = v.y, z = v.z, w = v.w;
}
// A thread's copies come as late as they may: when it waits for their group.
struct SimtCopy {
  unsigned to;
  int bytes;
  const void* from;
  long group;
};
struct SimtCopies {
  enum { kMost = 1024 };
  SimtCopy waiting[kMost];
  long begin, end, groups;
  void deliver(long below) {
    for (; begin < end && waiting[begin % kMost].group < below; ++begin) {
      const SimtCopy& copy = waiting[begin % kMost];
      memset(simt_shared(copy.to), 0, 16);
      memcpy(simt_shared(copy.to), copy.from, (size_t)copy.bytes);
    }
  }
};
static SimtCopies simt_all_copies[kSimtThreads];
static SimtCopies& simt_copies() {
  return simt_all_copies[threadIdx.x];
}
static void simt_begin_products();
static void simt_begin_thread() {
  simt_copies().begin = simt_copies().end = simt_copies().groups = 0;
  simt_begin_products();
}
static void ptx_cp_async_cg_shared_global(unsigned to, const void* from, int bytes = 16) {
  SimtCopies& copies = simt_copies();
  if (copies.end - copies.begin == SimtCopies::kMost) copies.deliver(copies.groups + 1);
  copies.waiting[copies.end++ % SimtCopies::kMost] = {to, bytes, from, copies.groups};
}
static void ptx_cp_async_commit_group() {
  ++simt_copies().groups;
}
static void ptx_cp_async_wait_group(int running) {
  simt_copies().deliver(simt_copies().groups - running);
}
static void ptx_cp_async_wait_all() {
  simt_copies().deliver(simt_copies().groups + 1);
}

static void simt_fail(const char* what) {
  dprintf(2, "simt: %s\n", what);
  abort();
}
// Reads the first and the last byte: behind a block's end that ends the program (fake_cuda.c).
static void ptx_cp_async_bulk_prefetch_L2_global(const void* from, int bytes) {
  if ((unsigned long)from % 16 != 0 || bytes <= 0 || bytes % 16 != 0) {
    simt_fail("cp.async.bulk.prefetch: an address or a size that isn't a multiple of 16");
  }
  (void)((const volatile char*)from)[0], (void)((const volatile char*)from)[bytes - 1];
}

// A fragment's elements as the PTX manual's figures for mma.m16n8k16 have them: lane 4 r + t has
// rows r and r + 8 of A and of the sum, column r of B, and of the inner dimension 2 t, 2 t + 1, and
// these plus 8.
struct SimtFragments {
  unsigned a[4], b[2];
};
template <float (*WIDEN)(unsigned short)>
inline void simt_mma(float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1,
                     unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  const SimtFragments mine = {{a0, a1, a2, a3}, {b0, b1}};
  const char* all = simt_state->meet(&mine, sizeof mine);
  float* const sums[4] = {&d0, &d1, &d2, &d3};
  const int row = simt_lane() / 4, column = simt_lane() % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    float sum = *sums[i];
    for (int t = 0; t < 4; ++t) {
      const auto of_a = simt_of_lane<SimtFragments>(all, row * 4 + t);
      const auto of_b = simt_of_lane<SimtFragments>(all, (column + i % 2) * 4 + t);
      for (int half = 0; half < 2; ++half) {
        const unsigned a = of_a.a[half * 2 + i / 2], b = of_b.b[half];
        sum += WIDEN((unsigned short)a) * WIDEN((unsigned short)b);
        sum += WIDEN((unsigned short)(a >> 16)) * WIDEN((unsigned short)(b >> 16));
      }
    }
    *sums[i] = sum;
  }
}
constexpr auto ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32 = simt_mma<simt_bf16>;
constexpr auto ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32 = simt_mma<simt_f16>;
// The same with bytes, as mma.m16n8k32 has them: of the inner dimension 4 t to 4 t + 3, and these
// plus 16.
template <typename CODE>
inline void simt_integer_mma(int& d0, int& d1, int& d2, int& d3, unsigned a0, unsigned a1,
                             unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  const SimtFragments mine = {{a0, a1, a2, a3}, {b0, b1}};
  const char* all = simt_state->meet(&mine, sizeof mine);
  int* const sums[4] = {&d0, &d1, &d2, &d3};
  const int row = simt_lane() / 4, column = simt_lane() % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    for (int t = 0; t < 4; ++t) {
      const auto of_a = simt_of_lane<SimtFragments>(all, row * 4 + t);
      const auto of_b = simt_of_lane<SimtFragments>(all, (column + i % 2) * 4 + t);
      for (int k = 0; k < 8; ++k) {
        const int shift = k % 4 * 8;
        *sums[i] += (CODE)(of_a.a[k / 4 * 2 + i / 2] >> shift & 0xff) *
                    (signed char)(of_b.b[k / 4] >> shift & 0xff);
      }
    }
  }
}
constexpr auto ptx_mma_sync_aligned_m16n8k32_row_col_s32_u8_s8_s32 =
    simt_integer_mma<unsigned char>;
constexpr auto ptx_mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32 = simt_integer_mma<signed char>;
// Lane 8 m + r has the address of row r of matrix m; lane 4 r + t gets of each matrix columns 2 t
// and 2 t + 1 of row r, or, transposed, rows 2 t and 2 t + 1 of column r.
template <bool TRANSPOSED>
inline void simt_ldmatrix(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned from) {
  const char* all = simt_state->meet(&from, sizeof from);
  unsigned* const to[4] = {&a, &b, &c, &d};
  const int lane = simt_lane();
  for (int m = 0; m < 4; ++m) {
    unsigned short pair[2];
    for (int i = 0; i < 2; ++i) {
      const int row = TRANSPOSED ? lane % 4 * 2 + i : lane / 4;
      const int column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + i;
      const auto address = simt_of_lane<unsigned>(all, m * 8 + row);
      memcpy(&pair[i], simt_shared(address) + column * 2, 2);
    }
    *to[m] = (unsigned)pair[1] << 16 | pair[0];
  }
}
constexpr auto ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16 = simt_ldmatrix<false>;
constexpr auto ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16 = simt_ldmatrix<true>;

#include "warpgroup_shim.h"
