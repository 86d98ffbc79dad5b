// Intrinsics, because Highway 1.0 has no dot product of bf16. Six rows by 64 columns of sums leave
// registers for four vectors of weights and one of x.
#include "engine/ops/cpu/bf16_product.h"

#include <cassert>
#include <cstring>

#include "engine/ops/cpu/row_groups.h"
#include "engine/weight_layout.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define ASSAY_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace assay::engine::cpu {

#if defined(__x86_64__)
namespace {

constexpr int64_t kPanel = Packing::kPanel;
constexpr int64_t kVectors = 4;
constexpr int64_t kGroupRows = 6;

template <int64_t rows>
ASSAY_BF16 __attribute__((noinline)) void group_product(const uint16_t* x, int64_t x_pitch,
                                                        const uint16_t* panel, int64_t pairs,
                                                        float* out, int64_t out_pitch, bool add) {
  __m512 sums[rows][kVectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < pairs; ++i) {
    __m512bh weights[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      weights[v] = (__m512bh)_mm512_load_si512(panel + i * kPanel * 2 + v * 32);
    }
    for (int64_t r = 0; r < rows; ++r) {
      int32_t pair;
      std::memcpy(&pair, x + r * x_pitch + 2 * i, sizeof pair);
      const auto value = (__m512bh)_mm512_set1_epi32(pair);
      for (int64_t v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], value, weights[v]);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) {
      float* to = out + r * out_pitch + v * 16;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(sums[r][v], _mm512_loadu_ps(to)) : sums[r][v]);
    }
  }
}

ASSAY_BF16 void round_vectors(const float* x, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), (__m256i)rounded);
  }
  if (i < count) {
    const auto mask = static_cast<__mmask16>((1u << (count - i)) - 1);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(to + i, mask, (__m256i)rounded);
  }
}

}  // namespace

bool has_bf16_dot() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

void round_to_bf16(const float* x, int64_t count, uint16_t* to) {
  round_vectors(x, count, to);
}

void bf16_block_product(const uint16_t* x, int64_t x_pitch, int64_t rows, const uint16_t* panel,
                        int64_t pairs, float* out, int64_t out_pitch, bool add) {
  for_row_groups<kGroupRows>(rows, [&](auto count, int64_t row) {
    group_product<count()>(x + row * x_pitch, x_pitch, panel, pairs, out + row * out_pitch,
                           out_pitch, add);
  });
}

#else  // other processors

bool has_bf16_dot() {
  return false;
}
void round_to_bf16(const float*, int64_t, uint16_t*) {
  assert(false);
}
void bf16_block_product(const uint16_t*, int64_t, int64_t, const uint16_t*, int64_t, float*,
                        int64_t, bool) {
  assert(false);
}

#endif

}  // namespace assay::engine::cpu
