// The template's text, with the sizes of a kernel before it as constants.
#include "engine/codegen/cpu/cpu_attention.h"

#include <cmath>
#include <string_view>

#include "base/text/text.h"
#include "engine/codegen/cpu/cpu_text.h"

namespace assay::engine {
namespace {

constexpr int64_t kFewQueries = 8;      // up to here a query at a time; more, in blocks
constexpr int64_t kQueryBlock = 64;     // queries of a unit of prefill
constexpr int64_t kPositionBlock = 64;  // positions whose keys stay in the first-level cache
constexpr int64_t kVector = 16;         // the widest register's floats
// Heads whose ranges are counted in; at a fixed place, so that counters stay zero between calls of
// different sizes. More heads than this need no ranges.
constexpr int64_t kCounters = 1024;

// Queries of one kv head that take turns on its keys.
int64_t few_rows(const AttentionKernel& k) {
  return k.heads / k.kv_heads * kFewQueries;
}

int64_t padded_head(const AttentionKernel& k) {
  return (k.head_dim + kVector - 1) / kVector * kVector;
}

// Scratch floats of the few-queries form and the block form; see their functions in the text.
int64_t block_scratch_floats(const AttentionKernel& k) {
  const int64_t rows = k.heads / k.kv_heads * kQueryBlock + 4;  // and four to spill idle rows into
  return kPositionBlock * k.head_dim + kPositionBlock * padded_head(k) + rows * padded_head(k) +
         2 * rows;
}

constexpr std::string_view kTypes = R"(
typedef long i64;
typedef int ivec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
static inline i64 least(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 most(i64 a, i64 b) { return a > b ? a : b; }
)";

constexpr std::string_view kMath = R"(
enum { V = WIDTH, FULL = HEAD_DIM / V, REST = HEAD_DIM % V, PADDED = (HEAD_DIM + V - 1) / V * V,
       GROUP = HEADS / KV_HEADS };

// The prelude's e^x for x <= 0, on vectors: a loop over exp_f() isn't always vectorised.
static inline vec exp_v(vec x) {
  const vec floor = x * 0.0f - 87.0f;
  x = x < floor ? floor : x;
  const vec shifted = x * 1.44269504f + 12582912.0f;
  const vec n = shifted - 12582912.0f;
  const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const ivec power = (__builtin_convertvector(n, ivec) + 127) << 23;
  return p * (vec)power;
}
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
#if defined(__AVX512F__)
#define HALF(v, first) __builtin_shufflevector(v, v, first, first + 1, first + 2, first + 3, first + 4, \
                                               first + 5, first + 6, first + 7)
static inline v8 halves_added(vec v) { return HALF(v, 0) + HALF(v, 8); }
static inline v8 halves_larger(vec v) {
  const v8 a = HALF(v, 0), b = HALF(v, 8);
  return a > b ? a : b;
}
#else
static inline v8 halves_added(vec v) { return v; }
static inline v8 halves_larger(vec v) { return v; }
#endif
static inline float sum_of(vec v) {
  const v8 a = halves_added(v);
  const v4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
  const v4 c = b + __builtin_shufflevector(b, b, 2, 3, 0, 1);
  return c[0] + c[1];
}
static inline float max_of(vec v) {
  const v8 c = halves_larger(v);
  const v4 d = __builtin_shufflevector(c, c, 0, 1, 2, 3), e = __builtin_shufflevector(c, c, 4, 5, 6, 7),
           f = d > e ? d : e, g = __builtin_shufflevector(f, f, 2, 3, 0, 1), h = f > g ? f : g;
  return h[0] > h[1] ? h[0] : h[1];
}
static inline const float* head_of(const Args* a, int cache, i64 b, i64 head, i64 capacity) {
  return (const float*)a->buffers[cache] + (CACHE_ROW(a, b) * KV_HEADS + head) * capacity * HEAD_DIM;
}
// Positions that a row has before this run.
static inline i64 before_of(const Args* a, i64 b) { return ((const int*)a->buffers[LENGTHS])[b]; }
static inline void copy_head(float* to, const float* from) {
  for (int d = 0; d < HEAD_DIM; ++d) to[d] = from[d];
}
)";

// Few queries: scores of a range of positions, their softmax, the weighted values. A range that is
// part of a head's positions leaves its maximum, sum and values in `shared`; the share that
// finishes a head last puts its ranges together.
constexpr std::string_view kFew = R"(
static inline float dot(const float* a, const float* b) {
  enum { STREAMS = 32 / V };
  vec sums[STREAMS] = {};
  int i = 0;
  for (; i + STREAMS * V <= HEAD_DIM; i += STREAMS * V)
    for (int s = 0; s < STREAMS; ++s) sums[s] += *(const vec*)(a + i + s * V) * *(const vec*)(b + i + s * V);
  for (; i + V <= HEAD_DIM; i += V) sums[0] += *(const vec*)(a + i) * *(const vec*)(b + i);
  for (int s = 1; s < STREAMS; ++s) sums[0] += sums[s];
  float sum = HEAD_DIM >= V ? sum_of(sums[0]) : 0.0f;
  for (; i < HEAD_DIM; ++i) sum += a[i] * b[i];
  return sum;
}
// Sums of VECTORS vectors at once stay in registers.
template <int VECTORS>
static inline void add_weighted_vectors(float* out, const float* weights, const float* values, i64 count) {
  if constexpr (VECTORS > 0) {
    vec sums[VECTORS];
    for (int v = 0; v < VECTORS; ++v) sums[v] = *(const vec*)(out + v * V);
    for (i64 p = 0; p < count; ++p)
      for (int v = 0; v < VECTORS; ++v) sums[v] += weights[p] * *(const vec*)(values + p * HEAD_DIM + v * V);
    for (int v = 0; v < VECTORS; ++v) *(vec*)(out + v * V) = sums[v];
  }
}
static inline void add_weighted(float* out, const float* weights, const float* values, i64 count) {
  int d = 0;
  for (; d + 8 * V <= HEAD_DIM; d += 8 * V) add_weighted_vectors<8>(out + d, weights, values + d, count);
  add_weighted_vectors<FULL % 8>(out + d, weights, values + d, count);
  for (i64 p = 0; p < count; ++p)
    for (d = FULL * V; d < HEAD_DIM; ++d) out[d] += weights[p] * values[p * HEAD_DIM + d];
}
// scores <- e^(scale (score - largest)) and 0 up to a multiple of V; their sum.
static inline float soften(float* scores, i64 count, float* largest) {
  for (i64 p = count; p % V != 0; ++p) scores[p] = -1e30f;
  vec peak = *(vec*)scores;
  for (i64 p = V; p < count; p += V) {
    const vec s = *(vec*)(scores + p);
    peak = s > peak ? s : peak;
  }
  const float m = max_of(peak);
  vec sums = {};
  for (i64 p = 0; p < count; p += V) {
    vec* s = (vec*)(scores + p);
    vec e = exp_v((*s - m) * SCALE);
    if (p + V > count) for (int i = (int)(count - p); i < V; ++i) e[i] = 0.0f;
    *s = e;
    sums += e;
  }
  *largest = m;
  return sum_of(sums);
}
// Ranges that a head's positions are cut into: as few as give every thread the same work.
static inline i64 ranges(i64 heads, i64 kv_len, i64 threads) {
  if (heads > COUNTERS) return 1;
  i64 n = 1;
  while (n < threads && heads * n % threads != 0 && heads * n < 4 * threads) ++n;
  return least(n, most(1, kv_len / 64));
}
// out[r], sum[r], largest[r] of each row over [begin, end); out isn't divided by the sum.
static void attend_range(const float* const* q, const i64* last, i64 rows, const float* keys,
                         const float* values, i64 begin, i64 end, float* scores, i64 pitch,
                         float* const* out, float* sum, float* largest) {
  for (i64 block = begin; block < end; block += 32)
    for (i64 r = 0; r < rows; ++r) {
      const i64 to = least(least(block + 32, end), last[r] + 1);
      for (i64 p = block; p < to; ++p) scores[r * pitch + p - begin] = dot(q[r], keys + p * HEAD_DIM);
    }
  for (i64 r = 0; r < rows; ++r) {
    const i64 count = most(0, least(end, last[r] + 1) - begin);
    for (int d = 0; d < HEAD_DIM; ++d) out[r][d] = 0.0f;
    largest[r] = -1e30f;
    sum[r] = count > 0 ? soften(scores + r * pitch, count, &largest[r]) : 0.0f;
  }
  for (i64 block = begin; block < end; block += 32)
    for (i64 r = 0; r < rows; ++r) {
      const i64 to = least(least(block + 32, end), last[r] + 1);
      if (block < to)
        add_weighted(out[r], scores + r * pitch + block - begin, values + block * HEAD_DIM, to - block);
    }
}
static void combine(float* const* out, i64 rows, const float* parts, i64 part, i64 n) {
  for (i64 r = 0; r < rows; ++r) {
    float m = -1e30f, sum = 0.0f;
    for (i64 i = 0; i < n; ++i) {
      const float* state = parts + i * part + rows * HEAD_DIM + 2 * r;
      m = state[0] > m ? state[0] : m;
    }
    for (int d = 0; d < HEAD_DIM; ++d) out[r][d] = 0.0f;
    for (i64 i = 0; i < n; ++i) {
      const float* state = parts + i * part + rows * HEAD_DIM + 2 * r;
      const float* from = parts + i * part + r * HEAD_DIM;
      const float w = state[1] > 0.0f ? exp_f((state[0] - m) * SCALE) : 0.0f;
      sum += w * state[1];
      for (int d = 0; d < HEAD_DIM; ++d) out[r][d] += w * from[d];
    }
    const float inverse = 1.0f / sum;
    for (int d = 0; d < HEAD_DIM; ++d) out[r][d] *= inverse;
  }
}
static void attend_few(const Args* a, i64 thread, i64 threads) {
  const i64 q_len = q_len_of(a), kv_len = kv_len_of(a), capacity = capacity_of(a);
  const i64 heads = batch_of(a) * KV_HEADS, n = ranges(heads, kv_len, threads);
  const i64 part = GROUP * q_len * (HEAD_DIM + 2);
  int* arrived = (int*)a->shared;
  float* parts = a->shared + COUNTERS;
  const i64 pitch = (kv_len / n + 1 + V - 1) / V * V;
  float* scores = a->scratch;
  const i64 stop = heads * n * (thread + 1) / threads;
  for (i64 unit = heads * n * thread / threads; unit < stop; ++unit) {
    const i64 head = unit / n, range = unit % n, b = head / KV_HEADS, kv = head % KV_HEADS;
    const float* keys = head_of(a, KEYS, b, kv, capacity);
    const float* values = head_of(a, VALUES, b, kv, capacity);
    const i64 first = ((const int*)a->buffers[PAD])[b], before = before_of(a, b), seen = before + q_len - first;
    const float* q[GROUP * FEW];
    float* out[GROUP * FEW];
    i64 last[GROUP * FEW], rows = 0;
    for (i64 t = 0; t < q_len; ++t)
      for (i64 g = 0; g < GROUP; ++g) {
        const i64 at = ((b * q_len + t) * HEADS + kv * GROUP + g) * HEAD_DIM;
        float* to = (float*)a->buffers[OUT] + at;
        const i64 position = before + t;
        if (position < first) {  // a query in the padding sees itself alone
          if (range == 0) copy_head(to, values + position * HEAD_DIM);
          continue;
        }
        q[rows] = (const float*)a->buffers[Q] + at;
        out[rows] = to;
        last[rows++] = position;
      }
    if (rows == 0) continue;
    const i64 begin = first + seen * range / n, end = first + seen * (range + 1) / n;
    float sum[GROUP * FEW], largest[GROUP * FEW];
    if (n == 1) {
      attend_range(q, last, rows, keys, values, begin, end, scores, pitch, out, sum, largest);
      for (i64 r = 0; r < rows; ++r) {
        const float inverse = 1.0f / sum[r];
        for (int d = 0; d < HEAD_DIM; ++d) out[r][d] *= inverse;
      }
      continue;
    }
    float* mine = parts + (head * n + range) * part;
    float* partial[GROUP * FEW];
    for (i64 r = 0; r < rows; ++r) partial[r] = mine + r * HEAD_DIM;
    attend_range(q, last, rows, keys, values, begin, end, scores, pitch, partial, sum, largest);
    for (i64 r = 0; r < rows; ++r) {
      mine[rows * HEAD_DIM + 2 * r] = largest[r];
      mine[rows * HEAD_DIM + 2 * r + 1] = sum[r];
    }
    if (__atomic_add_fetch(&arrived[head], 1, __ATOMIC_ACQ_REL) < n) continue;
    __atomic_store_n(&arrived[head], 0, __ATOMIC_RELAXED);
    combine(out, rows, parts + head * n * part, part, n);
  }
}
)";

// Blocks of queries: keys transposed once a block of positions, then four queries against 64
// positions, a softmax that is corrected as larger scores come (Milakov and Gimelshein, 2018), four
// queries against the values. Values are read from where they lie unless a head isn't whole
// vectors.
constexpr std::string_view kBlocks = R"(
enum { B = 64 };
// Swaps the off-diagonal blocks of S of two rows: a stage for each power of two transposes V x V.
#define LOW(j, S) ((j) & (S) ? V + (j) - (S) : (j))
#define HIGH(j, S) ((j) & (S) ? V + (j) : (j) + (S))
#define LANES8(F, S, j) F(j, S), F(j + 1, S), F(j + 2, S), F(j + 3, S), F(j + 4, S), F(j + 5, S), \
                        F(j + 6, S), F(j + 7, S)
#if defined(__AVX512F__)
#define LANES(F, S) LANES8(F, S, 0), LANES8(F, S, 8)
#else
#define LANES(F, S) LANES8(F, S, 0)
#endif
template <int S>
static inline void swap_blocks(vec* m) {
  for (int i = 0; i < V; ++i) {
    if (i & S) continue;
    const vec a = m[i], b = m[i + S];
    m[i] = __builtin_shufflevector(a, b, LANES(LOW, S));
    m[i + S] = __builtin_shufflevector(a, b, LANES(HIGH, S));
  }
}
static inline void transpose(const float* keys, i64 count, float* out) {  // [count, HEAD_DIM] -> [HEAD_DIM, B]
  for (i64 p = 0; p < B; p += V) {
    const i64 rows = most(0, least(V, count - p));
    const float* from = keys + p * HEAD_DIM;
    for (int d = 0; d < FULL * V; d += V) {
      vec m[V];
      for (int i = 0; i < V; ++i) m[i] = i < rows ? *(const vec*)(from + i * HEAD_DIM + d) : vec{};
      swap_blocks<1>(m);
      swap_blocks<2>(m);
      swap_blocks<4>(m);
      if constexpr (V > 8) swap_blocks<8>(m);
      for (int i = 0; i < V; ++i) *(vec*)(out + (d + i) * B + p) = m[i];
    }
    for (int d = FULL * V; d < HEAD_DIM; ++d)
      for (i64 i = 0; i < V; ++i) out[d * B + p + i] = i < rows ? from[i * HEAD_DIM + d] : 0.0f;
  }
}
// Registers hold the sums of four queries times AT_ONCE vectors.
enum { AT_ONCE = WIDTH == 16 ? 4 : 2 };
static inline void scores4(const float* const* q, const float* keys, float* scores) {
  for (int p = 0; p < B; p += AT_ONCE * V) {
    vec s[4][AT_ONCE] = {};
    for (int d = 0; d < HEAD_DIM; ++d) {
      vec k[AT_ONCE];
      for (int v = 0; v < AT_ONCE; ++v) k[v] = *(const vec*)(keys + d * B + p + v * V);
      for (int r = 0; r < 4; ++r) {
        const float x = q[r][d];
        for (int v = 0; v < AT_ONCE; ++v) s[r][v] += x * k[v];
      }
    }
    for (int r = 0; r < 4; ++r)
      for (int v = 0; v < AT_ONCE; ++v) *(vec*)(scores + r * B + p + v * V) = s[r][v];
  }
}
// The row's scores <- weights; what was summed so far has to be multiplied by the result.
static inline float weigh(float* scores, i64 visible, float* largest, float* sum) {
  for (i64 p = visible; p < B; ++p) scores[p] = -1e30f;
  vec peak = *(const vec*)scores;
  for (int p = V; p < B; p += V) {
    const vec s = *(const vec*)(scores + p);
    peak = s > peak ? s : peak;
  }
  const float block = max_of(peak);
  const float m = block > *largest ? block : *largest;
  const float correction = exp_f((*largest - m) * SCALE);
  vec total = {};
  for (int p = 0; p < B; p += V) {
    vec* s = (vec*)(scores + p);
    *s = exp_v((*s - m) * SCALE);
    total += *s;
  }
  *sum = *sum * correction + sum_of(total);
  *largest = m;
  return correction;
}
template <int VECTORS>
static inline void values4_vectors(float* const* out, const float* correction, const float* weights,
                                   const float* values, i64 pitch, i64 count, int first) {
  if constexpr (VECTORS > 0) {
    vec s[4][VECTORS];
    for (int r = 0; r < 4; ++r)
      for (int v = 0; v < VECTORS; ++v) s[r][v] = *(const vec*)(out[r] + first + v * V) * correction[r];
    for (i64 p = 0; p < count; ++p) {
      vec x[VECTORS];
      for (int v = 0; v < VECTORS; ++v) x[v] = *(const vec*)(values + p * pitch + first + v * V);
      for (int r = 0; r < 4; ++r) {
        const float w = weights[r * B + p];
        for (int v = 0; v < VECTORS; ++v) s[r][v] += w * x[v];
      }
    }
    for (int r = 0; r < 4; ++r)
      for (int v = 0; v < VECTORS; ++v) *(vec*)(out[r] + first + v * V) = s[r][v];
  }
}
static inline void values4(float* const* out, const float* correction, const float* weights,
                           const float* values, i64 pitch, i64 count) {
  int d = 0;
  for (; d + AT_ONCE * V <= PADDED; d += AT_ONCE * V)
    values4_vectors<AT_ONCE>(out, correction, weights, values, pitch, count, d);
  values4_vectors<PADDED / V % AT_ONCE>(out, correction, weights, values, pitch, count, d);
}
// The queries [begin, end) of one kv head's group, none of them padding.
static void attend_block(const Args* a, i64 b, i64 kv, i64 begin, i64 end, i64 first) {
  const i64 q_len = q_len_of(a), capacity = capacity_of(a);
  const float* keys = head_of(a, KEYS, b, kv, capacity);
  const float* values = head_of(a, VALUES, b, kv, capacity);
  const i64 rows = (end - begin) * GROUP;
  float* turned = a->scratch;                 // [HEAD_DIM, B]
  float* padded = turned + HEAD_DIM * B;      // [B, PADDED]
  float* out = padded + B * PADDED;           // [rows and four, PADDED]
  float* largest = out + (rows + 4) * PADDED;
  float* sum = largest + rows + 4;
  for (i64 i = 0; i < (rows + 4) * PADDED; ++i) out[i] = 0.0f;
  for (i64 r = 0; r < rows + 4; ++r) largest[r] = -1e30f, sum[r] = 0.0f;
  const i64 before = before_of(a, b), stop = before + end;
  for (i64 p0 = first; p0 < stop; p0 += B) {
    const i64 count = least(B, stop - p0);
    transpose(keys + p0 * HEAD_DIM, count, turned);
    const float* block = values + p0 * HEAD_DIM;
    if (REST != 0) {
      for (i64 p = 0; p < count; ++p)
        for (int d = 0; d < PADDED; ++d) padded[p * PADDED + d] = d < HEAD_DIM ? block[p * HEAD_DIM + d] : 0.0f;
      block = padded;
    }
    for (i64 g = 0; g < GROUP; ++g)
      for (i64 t = begin; t < end; t += 4) {
        if (before + least(t + 3, end - 1) < p0) continue;
        const float* q[4];
        float* to[4];
        float scores[4 * B], correction[4];
        i64 index[4];
        for (int r = 0; r < 4; ++r) {
          const i64 query = least(t + r, end - 1);
          q[r] = (const float*)a->buffers[Q] + ((b * q_len + query) * HEADS + kv * GROUP + g) * HEAD_DIM;
          index[r] = t + r < end ? g * (end - begin) + t + r - begin : rows + r;
          to[r] = out + index[r] * PADDED;
        }
        scores4(q, turned, scores);
        for (int r = 0; r < 4; ++r) {
          const i64 visible = least(count, before + least(t + r, end - 1) - p0 + 1);
          correction[r] = visible > 0 ? weigh(scores + r * B, visible, &largest[index[r]], &sum[index[r]]) : 1.0f;
          if (visible <= 0) for (int p = 0; p < B; ++p) scores[r * B + p] = 0.0f;
        }
        values4(to, correction, scores, block, REST != 0 ? PADDED : HEAD_DIM, count);
      }
  }
  for (i64 g = 0; g < GROUP; ++g)
    for (i64 t = begin; t < end; ++t) {
      const i64 r = g * (end - begin) + t - begin;
      float* to = (float*)a->buffers[OUT] + ((b * q_len + t) * HEADS + kv * GROUP + g) * HEAD_DIM;
      const float inverse = 1.0f / sum[r];
      for (int d = 0; d < HEAD_DIM; ++d) to[d] = out[r * PADDED + d] * inverse;
    }
}
// Later blocks see more positions: units go to threads there and back again.
static void attend_blocks(const Args* a, i64 thread, i64 threads) {
  const i64 q_len = q_len_of(a), capacity = capacity_of(a);
  const i64 blocks = (q_len + B - 1) / B, units = batch_of(a) * KV_HEADS * blocks;
  for (i64 unit = 0; unit < units; ++unit) {
    const i64 turn = unit % threads;
    if ((unit / threads % 2 != 0 ? threads - 1 - turn : turn) != thread) continue;
    const i64 b = unit / blocks / KV_HEADS, kv = unit / blocks % KV_HEADS, block = unit % blocks;
    const i64 first = ((const int*)a->buffers[PAD])[b], before = before_of(a, b);
    const i64 from = block * B, end = least(q_len, from + B);
    const i64 begin = most(from, least(end, first - before));
    for (i64 t = from; t < begin; ++t)  // padding sees itself alone
      for (i64 g = 0; g < GROUP; ++g)
        copy_head((float*)a->buffers[OUT] + ((b * q_len + t) * HEADS + kv * GROUP + g) * HEAD_DIM,
                  head_of(a, VALUES, b, kv, capacity) + (before + t) * HEAD_DIM);
    if (begin < end) attend_block(a, b, kv, begin, end, first);
  }
}
extern "C" void assay_run(const Args* a, i64 thread, i64 threads) {
  if (q_len_of(a) <= FEW) attend_few(a, thread, threads);
  else attend_blocks(a, thread, threads);
}
)";

// A size as a constant where the kernel is specialised on it, else as the run's.
std::string size_function(std::string_view name, const std::optional<int64_t>& value, int index) {
  return value
             ? fmt::format("static inline i64 {}_of(const Args*) {{ return {}; }}\n", name, *value)
             : fmt::format("static inline i64 {}_of(const Args* a) {{ return a->dims[{}]; }}\n",
                           name, index);
}

}  // namespace

std::string cpu_attention_source(const Kernel& kernel) {
  const auto& k = std::get<AttentionKernel>(kernel.body);
  std::string source(kCpuPrelude);
  source += kTypes;
  source += fmt::format(
      "enum {{ HEADS = {}, KV_HEADS = {}, HEAD_DIM = {}, FEW = {}, Q = {}, KEYS = {}, "
      "VALUES = {}, LENGTHS = {}, PAD = {}, OUT = {}, COUNTERS = {} }};\n",
      k.heads, k.kv_heads, k.head_dim, kFewQueries, k.q, k.keys, k.values, k.lengths, k.pad, k.out,
      kCounters);
  source += fmt::format("static const float SCALE = {:.9g}f;\n",
                        1.0 / std::sqrt(static_cast<double>(k.head_dim)));
  source +=
      k.slots ? fmt::format("#define CACHE_ROW(a, b) ((const int*)(a)->buffers[{}])[b]\n", *k.slots)
              : "#define CACHE_ROW(a, b) (b)\n";
  source += size_function("batch", kernel.dims.batch, 0);
  source += size_function("q_len", kernel.dims.q_len, 1);
  source += size_function("kv_len", kernel.dims.kv_len, 2);
  source += size_function("capacity", kernel.dims.capacity, 3);
  source += kMath;
  source += kFew;
  source += kBlocks;
  return source;
}

int64_t attention_scratch_floats(const AttentionKernel& kernel, const DimValues& dims) {
  if (dims.q_len > kFewQueries) return block_scratch_floats(kernel);
  const int64_t pitch = (dims.kv_len + 1 + kVector) / kVector * kVector;
  return few_rows(kernel) * pitch;
}

int64_t attention_shared_floats(const AttentionKernel& kernel, const DimValues& dims,
                                int64_t threads) {
  if (dims.q_len > kFewQueries) return 0;
  const int64_t heads = dims.batch * kernel.kv_heads;
  const int64_t part = kernel.heads / kernel.kv_heads * dims.q_len * (kernel.head_dim + 2);
  return kCounters + heads * threads * part;
}

}  // namespace assay::engine
