// The CPU operators: which kernel runs, and how its work is shared out over the pool.
#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <vector>

#include "engine/ops/cpu/attention.h"
#include "engine/ops/cpu/matrix_product.h"
#include "engine/ops/cpu/matvec.h"
#include "engine/ops/cpu/norm.h"
#include "engine/ops/cpu/pointwise.h"
#include "engine/ops/element.h"
#include "engine/ops/ops.h"

namespace assay::engine {
namespace {

// Work below these sizes stays on one thread: waking the others costs about a microsecond.
constexpr size_t kGrainElements = 16'384;     // of elementwise work
constexpr size_t kGrainWeightBytes = 32'768;  // of a matrix-vector product
constexpr int64_t kGrainAttention = 65'536;   // multiplications of queries with keys

// Up to here the matrix-vector kernels beat oneDNN, which copies weights to be fast.
constexpr int64_t kMatvecRows = 8;
// Fewer queries than this aren't worth a matrix product.
constexpr int64_t kProductQueries = 8;
constexpr int64_t kQueryBlock = 64;

// Rows of `width` elements that make a grain.
size_t grain_rows(int64_t width) {
  return std::max<size_t>(1, kGrainElements / static_cast<size_t>(std::max<int64_t>(1, width)));
}

// One attention call, and the pieces of it that threads take.
struct Attention {
  const float* q;
  const KvView& keys;
  const KvView& values;
  const TokenPlaces& places;
  const AttentionShape& shape;
  float* out;

  const float* kv_head(const KvView& view, int64_t b, int64_t head) const {
    const int64_t kv = head / (shape.heads / shape.kv_heads);
    return view.f32() + places.cache_row(b) * view.batch_stride + kv * view.head_stride;
  }
  int64_t offset(int64_t b, int64_t query, int64_t head) const {
    return ((b * shape.q_len + query) * shape.heads + head) * shape.head_dim;
  }
  // Queries before this one are padding.
  int64_t first_query(int64_t b) const {
    return std::clamp<int64_t>(places.first(b) - places.in_cache(b, 0), 0, shape.q_len);
  }

  // A query in the padding sees itself alone.
  void copy_padding(int64_t b, int64_t head) const {
    for (int64_t query = 0; query < first_query(b); ++query) {
      std::copy_n(kv_head(values, b, head) + places.in_cache(b, query) * shape.head_dim,
                  shape.head_dim, out + offset(b, query, head));
    }
  }

  // All queries of the heads [begin, end), which share a kv head, by dot products.
  void attend_few(int64_t b, int64_t begin, int64_t end, std::vector<float>& scratch) const {
    std::vector<cpu::Query> queries;
    for (int64_t head = begin; head < end; ++head) {
      copy_padding(b, head);
      for (int64_t query = first_query(b); query < shape.q_len; ++query) {
        const int64_t at = offset(b, query, head);
        queries.push_back({q + at, out + at, places.first(b), places.in_cache(b, query)});
      }
    }
    if (queries.empty()) return;
    const size_t scores = queries.size() * static_cast<size_t>(shape.kv_len);
    scratch.resize(std::max(scratch.size(), scores));
    cpu::attend(queries, kv_head(keys, b, begin), kv_head(values, b, begin), shape.head_dim,
                scratch.data());
  }

  // The queries [begin, end) of one head, none of them padding, by matrix products. False if oneDNN
  // can't.
  bool attend_block(int64_t b, int64_t head, int64_t begin, int64_t end,
                    std::vector<float>& scratch) const {
    const int64_t first = places.first(b);
    const int64_t seen = places.in_cache(b, end - 1) - first + 1;
    const int64_t rows = end - begin;
    const int64_t pitch = shape.heads * shape.head_dim;
    const float* k = kv_head(keys, b, head) + first * shape.head_dim;
    const float* v = kv_head(values, b, head) + first * shape.head_dim;
    scratch.resize(std::max(scratch.size(), static_cast<size_t>(rows * seen)));
    float* scores = scratch.data();
    if (!cpu::small_product(q + offset(b, begin, head), pitch, k, shape.head_dim, true, scores,
                            seen, rows, seen, shape.head_dim)) {
      return false;
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t visible = places.in_cache(b, begin + r) - first + 1;
      cpu::softmax(scores + r * seen, visible, scale);
      std::fill(scores + r * seen + visible, scores + (r + 1) * seen, 0.0f);
    }
    return cpu::small_product(scores, seen, v, shape.head_dim, false, out + offset(b, begin, head),
                              pitch, rows, shape.head_dim, seen);
  }
};

class CpuOps final : public OpLibrary {
 public:
  CpuOps(ThreadPool& pool, Rounding rounding)
      : pool_(pool), product_(pool, rounding), scratch_(pool.size()) {}

  std::string_view name() const override { return "cpu"; }

  void embedding(std::span<const int32_t> ids, const TensorView& table, float* out) override {
    const int64_t hidden = table.shape[1];
    pool_.parallel_for(ids.size(), grain_rows(hidden), [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        assert(ids[t] >= 0 && ids[t] < table.shape[0]);
        float* const to = out + static_cast<int64_t>(t) * hidden;
        if (table.in_blocks()) {
          decode_row(table, ids[t], to);
        } else {
          cpu::convert_to_f32(table.row(ids[t]), table.element(), to, hidden);
        }
      }
    });
  }

  void positions(const TokenPlaces& places, int32_t* out) override {
    for (int64_t t = 0; t < std::ssize(places.lengths) * places.q_len; ++t) {
      out[t] = static_cast<int32_t>(places.in_text(t / places.q_len, t % places.q_len));
    }
  }

  void add(const float* a, const float* b, float* out, int64_t count) override {
    for_elements(count, [&](int64_t i, int64_t n) { cpu::add(a + i, b + i, out + i, n); });
  }

  void multiply(const float* a, const float* b, float* out, int64_t count) override {
    for_elements(count, [&](int64_t i, int64_t n) { cpu::multiply(a + i, b + i, out + i, n); });
  }

  void activate(Activation kind, const float* x, float* out, int64_t count) override {
    for_elements(count, [&](int64_t i, int64_t n) { cpu::activate(kind, x + i, out + i, n); });
  }

  void layer_norm(const float* x, const TensorView& weight, const TensorView& bias, double eps,
                  float* out, int64_t rows, int64_t width) override {
    for_rows(rows, width, [&](int64_t r, int64_t n) {
      cpu::layer_norm(x + r * width, weight, bias, eps, out + r * width, n, width);
    });
  }

  void rms_norm(const float* x, const TensorView& weight, double eps, float* out, int64_t rows,
                int64_t width) override {
    for_rows(rows, width, [&](int64_t r, int64_t n) {
      cpu::rms_norm(x + r * width, weight, eps, out + r * width, n, width);
    });
  }

  void linear(const float* x, const TensorView& weight, WeightLayout layout, const TensorView* bias,
              float* out, int64_t rows) override {
    if (rows > kMatvecRows && product_.run(x, weight, layout, bias, out, rows)) return;
    const bool out_in = layout == WeightLayout::kOutIn;
    const cpu::Matvec product{.x = x,
                              .rows = rows,
                              .weight = weight,
                              .bias = bias,
                              .out = out,
                              .inputs = weight.shape[out_in ? 1 : 0],
                              .outputs = weight.shape[out_in ? 0 : 1]};
    if (weight.in_blocks()) return share_blocks(product);
    out_in ? share_outputs(product) : share_inputs(product);
  }

  void rope(const float* x, const TokenPlaces& places, const float* cos, const float* sin,
            float* out, int64_t heads, int64_t head_dim) override {
    const int64_t width = heads * head_dim;
    const int64_t half = head_dim / 2;
    for_rows(std::ssize(places.lengths) * places.q_len, width, [&](int64_t first, int64_t count) {
      for (int64_t t = first; t < first + count; ++t) {
        const int64_t row = places.in_text(t / places.q_len, t % places.q_len) * half;
        cpu::rotate(x + t * width, cos + row, sin + row, out + t * width, heads, half);
      }
    });
  }

  void kv_write(const float* x, const TokenPlaces& places, const KvView& cache) override {
    const int64_t width = cache.kv_heads * cache.head_dim;
    for_rows(places.batch() * places.q_len, width, [&](int64_t first, int64_t count) {
      for (int64_t t = first; t < first + count; ++t) {
        const int64_t b = t / places.q_len;
        float* row = cache.f32() + places.cache_row(b) * cache.batch_stride +
                     places.in_cache(b, t % places.q_len) * cache.head_dim;
        for (int64_t h = 0; h < cache.kv_heads; ++h) {
          std::copy_n(x + t * width + h * cache.head_dim, cache.head_dim,
                      row + h * cache.head_stride);
        }
      }
    });
  }

  void attention(const float* q, const KvView& keys, const KvView& values,
                 const TokenPlaces& places, const AttentionShape& shape, float* out) override {
    const Attention call{q, keys, values, places, shape, out};
    if (shape.q_len < kProductQueries || !attend_blocks(call)) attend_heads(call);
  }

  void last_rows(const float* x, int64_t batch, int64_t q_len, int64_t hidden,
                 float* out) override {
    for (int64_t b = 0; b < batch; ++b) {
      std::copy_n(x + ((b + 1) * q_len - 1) * hidden, hidden, out + b * hidden);
    }
  }

  void argmax(const float* x, int64_t rows, int64_t width, int32_t* out) override {
    for_rows(rows, width, [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; ++r) {
        out[r] = static_cast<int32_t>(cpu::argmax(x + r * width, width));
      }
    });
  }

 private:
  void share_outputs(const cpu::Matvec& product) {
    const size_t output_bytes =
        static_cast<size_t>(product.inputs) * dtype_size_bytes(product.weight.element());
    const size_t lines =
        std::max<size_t>(1, kGrainWeightBytes / std::max<size_t>(1, output_bytes) / 16);
    pool_.parallel_for(
        static_cast<size_t>(product.outputs), 16 * lines, [&](size_t begin, size_t end) {
          cpu::matvec_out_in(product, static_cast<int64_t>(begin), static_cast<int64_t>(end));
        });
  }

  // The product with a weight in blocks: a tile of outputs at a time, whose rows are decoded.
  void share_blocks(const cpu::Matvec& product) {
    constexpr int64_t kTile = 16;
    const int64_t tiles = (product.outputs + kTile - 1) / kTile;
    pool_.parallel_for(static_cast<size_t>(tiles), 1, [&](size_t begin, size_t end) {
      std::vector<float> rows(static_cast<size_t>(kTile * product.inputs));
      std::vector<float> results(static_cast<size_t>(kTile * product.rows));
      const TensorView tile(reinterpret_cast<const std::byte*>(rows.data()), DType::kF32,
                            {kTile, product.inputs});
      for (auto t = static_cast<int64_t>(begin); t < static_cast<int64_t>(end); ++t) {
        const int64_t first = t * kTile, count = std::min(kTile, product.outputs - first);
        for (int64_t o = 0; o < count; ++o) {
          decode_row(product.weight, first + o, rows.data() + o * product.inputs);
        }
        cpu::matvec_out_in({.x = product.x,
                            .rows = product.rows,
                            .weight = tile,
                            .out = results.data(),
                            .inputs = product.inputs,
                            .outputs = kTile},
                           0, count);
        for (int64_t o = 0; o < count; ++o) {
          const float bias =
              product.bias == nullptr
                  ? 0.0f
                  : load_element(product.bias->data, product.bias->element(), first + o);
          for (int64_t r = 0; r < product.rows; ++r) {
            product.out[r * product.outputs + first + o] =
                results[static_cast<size_t>(r * kTile + o)] + bias;
          }
        }
      }
    });
  }

  // Each thread sums its share of the inputs into outputs of its own; the first one's are the
  // result's.
  void share_inputs(const cpu::Matvec& product) {
    const auto threads = static_cast<int64_t>(pool_.size());
    if (threads == 1 || product.weight.size_bytes() < 2 * kGrainWeightBytes) {
      return cpu::matvec_in_out(product, 0, product.inputs);
    }
    const int64_t count = product.rows * product.outputs;
    partial_.resize(std::max(partial_.size(), static_cast<size_t>((threads - 1) * count)));
    pool_.run([&](size_t thread) {
      const auto index = static_cast<int64_t>(thread);
      cpu::Matvec share = product;
      if (index > 0) {
        share.out = partial_.data() + (index - 1) * count;
        share.bias = nullptr;
      }
      cpu::matvec_in_out(share, product.inputs * index / threads,
                         product.inputs * (index + 1) / threads);
    });
    for (int64_t i = 0; i < threads - 1; ++i) {
      cpu::add(product.out, partial_.data() + i * count, product.out, count);
    }
  }

  // body(first, count) over shares of [0, count).
  template <class Body>
  void for_elements(int64_t count, const Body& body) {
    pool_.parallel_for(static_cast<size_t>(count), kGrainElements, [&](size_t begin, size_t end) {
      body(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    });
  }

  template <class Body>
  void for_rows(int64_t rows, int64_t width, const Body& body) {
    pool_.parallel_for(static_cast<size_t>(rows), grain_rows(width), [&](size_t begin, size_t end) {
      body(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    });
  }

  // body(unit, the thread's scratch) for units of unlike cost: threads take the next when they are
  // done.
  template <class Body>
  void for_units(int64_t units, bool alone, const Body& body) {
    if (alone) {
      for (int64_t unit = 0; unit < units; ++unit) body(unit, scratch_[0]);
      return;
    }
    std::atomic<int64_t> next = 0;
    pool_.run([&](size_t thread) {
      for (int64_t unit = next++; unit < units; unit = next++) body(unit, scratch_[thread]);
    });
  }

  static bool small(const AttentionShape& s) {
    return s.batch * s.heads * s.q_len * s.kv_len * s.head_dim < kGrainAttention;
  }

  // A unit is the query heads of one kv head, or each of them where that gives threads too little
  // to take.
  void attend_heads(const Attention& call) {
    const AttentionShape& s = call.shape;
    const bool together = s.batch * s.kv_heads >= static_cast<int64_t>(pool_.size());
    const int64_t heads = together ? s.heads / s.kv_heads : 1;  // of a unit
    const int64_t units = s.heads / heads;                      // of a batch row
    for_units(s.batch * units, small(s), [&](int64_t unit, std::vector<float>& scratch) {
      const int64_t head = unit % units * heads;
      call.attend_few(unit / units, head, head + heads, scratch);
    });
  }

  // A unit is a block of queries of one head.
  bool attend_blocks(const Attention& call) {
    const AttentionShape& s = call.shape;
    const int64_t blocks = (s.q_len + kQueryBlock - 1) / kQueryBlock;
    std::atomic<bool> done = true;
    for_units(s.batch * s.heads * blocks, small(s), [&](int64_t unit, std::vector<float>& scratch) {
      const int64_t block = unit % blocks;
      const int64_t head = unit / blocks % s.heads;
      const int64_t b = unit / blocks / s.heads;
      const int64_t begin = std::max(call.first_query(b), block * kQueryBlock);
      const int64_t end = std::min(s.q_len, (block + 1) * kQueryBlock);
      if (block == 0) call.copy_padding(b, head);
      if (begin < end && !call.attend_block(b, head, begin, end, scratch)) done = false;
    });
    return done;
  }

  ThreadPool& pool_;
  cpu::MatrixProduct product_;
  std::vector<std::vector<float>> scratch_;  // one a thread
  std::vector<float> partial_;               // share_inputs: [threads - 1, rows, outputs]
};

}  // namespace

std::unique_ptr<OpLibrary> make_cpu_ops(ThreadPool& pool, Rounding rounding) {
  return std::make_unique<CpuOps>(pool, rounding);
}

}  // namespace assay::engine
