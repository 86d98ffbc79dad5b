// Text of the printed kernels that is the same for all of them. Written so that compilers vectorise
// it without -ffast-math: no branches, no calls, vector types where the shape is fixed.
#include "engine/codegen/cpu/cpu_text.h"

namespace assay::engine {

// exp: 2^n e^r, |r| <= ln(2) / 2, by the polynomial of Cephes' expf; of at most 87 in size, held by
// integers: of a bound in floats GCC 12 makes a case of its own and divides every x by 1 + e^88,
// which leaves subnormal numbers, at 150 cycles each on Intel's processors. erfc: Chebyshev fit of
// Numerical Recipes (2nd ed., section 6.2), the exponent split so that large squares keep their low
// bits; past 9 it is 0 in fp32 anyway.
const std::string_view kCpuPrelude = R"(
// WIDTH is a register's floats: GCC 12 keeps wider vectors in memory, all sums too.
#if defined(__AVX512F__)
enum { WIDTH = 16 };
#else
enum { WIDTH = 8 };
#endif
typedef float vec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
struct Args { void* const* buffers; long dims[4]; float* scratch; float* shared; };

static inline float from_bf16(unsigned short x) {
  return __builtin_bit_cast(float, (unsigned)x << 16);
}
static inline float from_f16(_Float16 x) { return (float)x; }
static inline float sqrt_f(float x) { return __builtin_sqrtf(x); }
static inline float exp_f(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x), size = bits & 0x7fffffffu;
  const unsigned within = size < 0x42ae0000u ? size : 0x42ae0000u;
  const float y = __builtin_bit_cast(float, within | (bits & 0x80000000u));
  const float n = (y * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  p *= __builtin_bit_cast(float, ((int)n + 127) << 23);
  return x != x ? x : p;
}
static inline float erfc_f(float x) {
  float z = __builtin_fabsf(x);
  z = z > 9.3f ? 9.3f : z;
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.17087277f;
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  const float square = z * z;
  const float low = __builtin_fmaf(z, z, -square);
  const float tail = t * exp_f(-square) * exp_f(p - low);
  return x < 0.0f ? 2.0f - tail : tail;
}
)";

const std::string_view kCpuTileProduct = R"(
typedef unsigned uvec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef _Float16 f16vec __attribute__((vector_size(WIDTH * 2), aligned(2), may_alias));
typedef short s16vec __attribute__((vector_size(WIDTH * 2), aligned(2), may_alias));
// A row of a panel's memory holds ABREAST inputs of each column.
enum {
  PANEL = 64,
  PADDED_INPUTS = (INPUTS + 15) / 16 * 16,
  ROW = PANEL * ABREAST,
  PART = INPUTS / ABREAST / 4,
  AHEAD = AHEAD_BYTES / (ROW * sizeof(weight_t)),
};

// ABREAST inputs of WIDTH columns.
static inline void load_weights(const float* p, vec* to) { *to = *(const vec*)p; }
static inline void load_weights(const unsigned short* p, vec* to) {  // a pair of bf16
  const uvec pairs = *(const uvec*)p;
  to[0] = (vec)(pairs << 16);
  to[1] = (vec)(pairs & 0xffff0000u);
}
static inline void load_weights(const _Float16* p, vec* to) {
#if defined(__AVX512F__)  // GCC 12 converts such vectors element by element
  *to = (vec)__builtin_ia32_vcvtph2ps512_mask(*(const s16vec*)p, (vec){}, -1, 4);
#elif defined(__F16C__)
  *to = (vec)__builtin_ia32_vcvtph2ps256(*(const s16vec*)p);
#else
  *to = __builtin_convertvector(*(const f16vec*)p, vec);
#endif
}

// sums += USED of the inputs in a row of the panel's memory, times those of each row of x.
template <int ROWS, int VECTORS, int USED = ABREAST>
static inline void add_row(const weight_t* __restrict w, const float* __restrict x,
                           vec (&sums)[ROWS][VECTORS]) {
  vec weights[VECTORS][ABREAST];
  for (int c = 0; c < VECTORS; ++c) load_weights(w + c * WIDTH * ABREAST, weights[c]);
  for (int i = 0; i < USED; ++i) {
    for (int r = 0; r < ROWS; ++r) {
      const float scale = x[r * INPUTS + i];
      for (int c = 0; c < VECTORS; ++c) sums[r][c] += weights[c][i] * scale;
    }
  }
}

// Prefetches for row i of each stream. With AVX-512 the row AHEAD_BYTES ahead, at the end in the
// panel that follows, which keeps a core's miss buffers full. Elsewhere the processor's own guesses
// do better (Zen 3: 20 against 15 GB/s), so this fetches only the columns that the next pass over
// row i reads.
template <int COLUMNS>
static inline void fetch(const weight_t* w, long i) {
  const weight_t* row = w + i * ROW;
  unsigned at = COLUMNS * ABREAST * sizeof(weight_t);
  if (WIDTH == 16) {
    row += AHEAD * ROW + (i < PART - AHEAD ? 0 : PANEL * PADDED_INPUTS - PART * ROW);
    at = 0;
  }
  for (; at < ROW * sizeof(weight_t); at += 64) {
    for (int s = 0; s < 4; ++s) __builtin_prefetch((const char*)(row + s * PART * ROW) + at);
  }
}

// out [ROWS, COLUMNS] (+)= x . the inputs [begin, end) of each of four streams, a quarter of the
// panel's inputs each, and with the last of them those left over. Sums are kept apart where registers
// allow it. FETCH: nobody has read these inputs yet.
template <int ROWS, int COLUMNS, int SETS, bool FETCH>
static inline void add_inputs(const weight_t* __restrict w, const float* __restrict x,
                              float* __restrict out, long begin, long end) {
  enum { VECTORS = COLUMNS / WIDTH };
  vec sums[SETS][ROWS][VECTORS] = {};
  if (begin > 0) {
    for (int r = 0; r < ROWS; ++r) {
      for (int c = 0; c < VECTORS; ++c) sums[0][r][c] = *(const vec*)(out + r * TILE + c * WIDTH);
    }
  }
  for (long i = begin; i < end; ++i) {
    if (FETCH) fetch<COLUMNS>(w, i);
    for (int s = 0; s < 4; ++s) {
      add_row<ROWS, VECTORS>(w + (s * PART + i) * ROW, x + (s * PART + i) * ABREAST,
                             sums[s % SETS]);
    }
  }
  if (end == PART) {
    long i = 4 * PART;
    for (; i < INPUTS / ABREAST; ++i) add_row<ROWS, VECTORS>(w + i * ROW, x + i * ABREAST, sums[0]);
    if (INPUTS % ABREAST != 0) add_row<ROWS, VECTORS, 1>(w + i * ROW, x + i * ABREAST, sums[0]);
  }
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < VECTORS; ++c) {
      vec sum = sums[0][r][c];
      for (int s = 1; s < SETS; ++s) sum += sums[s][r][c];
      *(vec*)(out + r * TILE + c * WIDTH) = sum;
    }
  }
}

// All columns of the panel, as many in a pass as 16 of 32 registers, or 4 to 12 of 16, hold sums of.
template <int ROWS, bool FETCH>
static inline void add_rows(const weight_t* __restrict w, const float* __restrict x,
                            float* __restrict out, long begin, long end) {
  enum {
    COLUMNS = WIDTH == 16 || ROWS == 1 ? PANEL : ROWS == 4 || ROWS * ABREAST == 6 ? 16 : 32,
    SETS = WIDTH == 8 ? 1 : ROWS == 1 ? 4 : ROWS == 2 ? 2 : 1,
  };
  add_inputs<ROWS, COLUMNS, SETS, FETCH>(w, x, out, begin, end);
  for (int c = COLUMNS; c < PANEL; c += COLUMNS) {
    add_inputs<ROWS, COLUMNS, SETS, false>(w + c * ABREAST, x, out + c, begin, end);
  }
}

// The panels of a tile against `rows` rows: KNOWN of them in all, or any number if that is 0. Only
// what is needed is compiled. Where a panel takes several passes, they stay within inputs that the
// first-level cache holds. AGAIN: later rows fetch too.
template <long KNOWN>
static inline void tile_product(const weight_t* w, const float* x, long rows, float* out) {
  enum { INNER = WIDTH == 16 || KNOWN == 1 || PART < 16 ? PART : 16, AGAIN = WIDTH == 16 };
  for (int p = 0; p < TILE / PANEL; ++p, w += PANEL * PADDED_INPUTS, out += PANEL) {
    long begin = 0;
    do {
      const long end = begin + INNER < PART ? begin + INNER : PART;
      long r = 0;
      if constexpr (KNOWN == 0 || KNOWN >= 4) {
        if (rows >= 4) add_rows<4, true>(w, x, out, begin, end), r = 4;
        for (; r + 4 <= rows; r += 4) {
          add_rows<4, AGAIN>(w, x + r * INPUTS, out + r * TILE, begin, end);
        }
      }
      if constexpr (KNOWN == 0 || KNOWN % 4 == 3) {
        if (rows - r == 3) add_rows<3, AGAIN || KNOWN < 4>(w, x + r * INPUTS, out + r * TILE, begin, end);
      }
      if constexpr (KNOWN == 0 || KNOWN % 4 == 2) {
        if (rows - r == 2) add_rows<2, AGAIN || KNOWN < 4>(w, x + r * INPUTS, out + r * TILE, begin, end);
      }
      if constexpr (KNOWN == 0 || KNOWN % 4 == 1) {
        if (rows - r == 1) add_rows<1, AGAIN || KNOWN < 4>(w, x + r * INPUTS, out + r * TILE, begin, end);
      }
      begin = end;
    } while (begin < PART);
  }
}
)";

}  // namespace assay::engine
