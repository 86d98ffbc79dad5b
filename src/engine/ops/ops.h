// The operator library of the eager executor: one interface, a reference version and a CPU version.
//
// Activations are fp32; weights are read in place: of fp32, fp16 or bf16, aligned to their element,
// or, in tables and products [out, in] alone, in blocks at any address. Shapes are trailing
// comments. Pointers must not be null unless said; outputs
// never overlap inputs unless said. Programmer errors are asserts: by the time an operator runs,
// everything has been validated.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/process/thread_pool.h"
#include "engine/model/config.h"
#include "engine/tensor.h"
#include "engine/weight_format.h"
#include "engine/weight_layout.h"

namespace assay::engine {

// Keys or values of one layer, as the cache hands them out. Element (b, h, p, d) is at
// data[b * batch_stride + h * head_stride + p * head_dim + d]. Operators take fp32 alone.
struct KvView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t batch = 0;
  int64_t kv_heads = 0;
  int64_t capacity = 0;  // positions that head_stride has room for
  int64_t head_dim = 0;
  int64_t batch_stride = 0;  // in elements
  int64_t head_stride = 0;

  float* f32() const {
    assert(dtype == DType::kF32);
    return static_cast<float*>(data);
  }
};

struct AttentionShape {
  int64_t batch = 0;
  int64_t q_len = 0;
  int64_t kv_len = 0;  // positions in use by the longest row, the q_len new ones included
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; query head h reads kv head h / (heads / kv_heads)
  int64_t head_dim = 0;
};

// The places of a run's tokens: token i of a row comes behind those that its cache has already.
struct TokenPlaces {
  std::span<const int32_t> lengths;  // [batch]: cache positions in use before the run
  std::span<const int32_t> pad;      // [batch]: padding at the begin of these and the run's
  int64_t q_len = 0;
  std::span<const int32_t> slots = {};  // [batch]: rows of the cache; empty: the batch's, in order

  int64_t batch() const { return std::ssize(lengths); }
  int64_t cache_row(int64_t row) const {
    return slots.empty() ? row : slots[static_cast<size_t>(row)];
  }
  int64_t in_cache(int64_t row, int64_t i) const { return lengths[static_cast<size_t>(row)] + i; }
  int64_t first(int64_t row) const { return pad[static_cast<size_t>(row)]; }
  // Padding is at the text's first place too.
  int64_t in_text(int64_t row, int64_t i) const {
    return std::max<int64_t>(in_cache(row, i) - first(row), 0);
  }
};

class OpLibrary {
 public:
  virtual ~OpLibrary() = default;
  virtual std::string_view name() const = 0;  // "reference", "cpu"

  // out[t] = table[ids[t]]. ids in range: assert.
  virtual void embedding(std::span<const int32_t> ids, const TensorView& table,  // [vocab, hidden]
                         float* out) = 0;                                        // [tokens, hidden]

  // out[row, i] = places.in_text(row, i).
  virtual void positions(const TokenPlaces& places, int32_t* out) = 0;  // [batch, q_len]

  virtual void add(const float* a, const float* b, float* out,
                   int64_t count) = 0;  // out may be a or b
  virtual void multiply(const float* a, const float* b, float* out, int64_t count) = 0;  // likewise
  virtual void activate(Activation kind, const float* x, float* out,
                        int64_t count) = 0;  // out may be x

  // (x - mean) / sqrt(variance + eps) * weight + bias, a row each.
  virtual void layer_norm(const float* x, const TensorView& weight, const TensorView& bias,
                          double eps, float* out, int64_t rows, int64_t width) = 0;
  // x / sqrt(mean(x^2) + eps) * weight, a row each.
  virtual void rms_norm(const float* x, const TensorView& weight, double eps, float* out,
                        int64_t rows, int64_t width) = 0;

  // out = x . weight^T + bias. bias may be null. rows = 1..few takes the matrix-vector path, more
  // rows a matrix product, in which x may be rounded to bf16 where weights are (adr/0003).
  virtual void linear(const float* x,                                 // [rows, in]
                      const TensorView& weight, WeightLayout layout,  // [out, in] or [in, out]
                      const TensorView* bias,                         // [out]
                      float* out,                                     // [rows, out]
                      int64_t rows) = 0;

  // Rotates pairs (d, d + head_dim / 2) by the token's place in the text: transformers' rotate_half
  // convention. out may be x.
  virtual void rope(const float* x,  // [batch, q_len, heads, head_dim]
                    const TokenPlaces& places, const float* cos,
                    const float* sin,  // [max_positions, head_dim / 2]
                    float* out, int64_t heads, int64_t head_dim) = 0;

  // cache[places.cache_row(b), h, places.in_cache(b, q), :] = x[b, q, h, :]; padding is written
  // too.
  virtual void kv_write(const float* x,  // [batch, q_len, kv_heads, head_dim]
                        const TokenPlaces& places, const KvView& cache) = 0;

  // Causal softmax attention over the cache; scale 1 / sqrt(head_dim). Query i of a row sits at
  // position places.in_cache(b, i) of its row of the cache and sees positions [pad[b], that]; a
  // query inside the padding sees itself alone (its result is never read).
  virtual void attention(const float* q,  // [batch, q_len, heads, head_dim]
                         const KvView& keys, const KvView& values, const TokenPlaces& places,
                         const AttentionShape& shape,
                         float* out) = 0;  // [batch, q_len, heads, head_dim]

  // out[b] = x[b, q_len - 1].
  virtual void last_rows(const float* x,  // [batch, q_len, hidden]
                         int64_t batch, int64_t q_len, int64_t hidden,
                         float* out) = 0;  // [batch, hidden]

  // Index of the largest element, the first of equals; a NaN counts as larger than any number
  // (torch.argmax on the CPU).
  virtual void argmax(const float* x, int64_t rows, int64_t width, int32_t* out) = 0;
};

// Plain loops, double accumulators where sums are long. Slow, for tests.
std::unique_ptr<OpLibrary> make_reference_ops();
// Rounding of x in products of many rows with weights of bf16.
enum class Rounding {
  kFastest,  // to bf16, if the processor multiplies pairs of it
  kNone,
};
// Highway for SIMD (dispatched at run time), oneDNN for matrix products, `pool` for threads. The
// pool must outlive the library.
std::unique_ptr<OpLibrary> make_cpu_ops(ThreadPool& pool, Rounding rounding = Rounding::kFastest);

}  // namespace assay::engine
