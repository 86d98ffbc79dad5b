// The operators as their formulas read: plain loops, one thread, double accumulators.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "engine/ops/ops.h"

namespace assay::engine {
namespace {

double activation_of(Activation kind, double x) {
  switch (kind) {
    case Activation::kGeluTanh: {
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * inner));  // = 0.5 x (1 + tanh(inner)), without cancellation
    }
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::kRelu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return 0;
}

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  const int64_t width = std::max<int64_t>(1, tensor.row_values());
  for (int64_t i = 0; i < std::ssize(values) / width; ++i) {
    decode_row(tensor, i, values.data() + i * width);
  }
  return values;
}

class ReferenceOps final : public OpLibrary {
 public:
  std::string_view name() const override { return "reference"; }

  void embedding(std::span<const int32_t> ids, const TensorView& table, float* out) override {
    const int64_t hidden = table.shape[1];
    for (size_t t = 0; t < ids.size(); ++t, out += hidden) {
      assert(ids[t] >= 0 && ids[t] < table.shape[0]);
      decode_row(table, ids[t], out);
    }
  }

  void positions(const TokenPlaces& places, int32_t* out) override {
    for (int64_t b = 0; b < std::ssize(places.lengths); ++b) {
      for (int64_t i = 0; i < places.q_len; ++i) {
        *out++ = static_cast<int32_t>(places.in_text(b, i));
      }
    }
  }

  void add(const float* a, const float* b, float* out, int64_t count) override {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  }

  void multiply(const float* a, const float* b, float* out, int64_t count) override {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
  }

  void activate(Activation kind, const float* x, float* out, int64_t count) override {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(activation_of(kind, x[i]));
  }

  void layer_norm(const float* x, const TensorView& weight, const TensorView& bias, double eps,
                  float* out, int64_t rows, int64_t width) override {
    const std::vector<float> weights = decoded(weight), offsets = decoded(bias);
    for (int64_t r = 0; r < rows; ++r, x += width, out += width) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(width);
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
      for (int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<size_t>(i);
        out[i] = static_cast<float>((x[i] - mean) * scale * weights[at] + offsets[at]);
      }
    }
  }

  void rms_norm(const float* x, const TensorView& weight, double eps, float* out, int64_t rows,
                int64_t width) override {
    const std::vector<float> weights = decoded(weight);
    for (int64_t r = 0; r < rows; ++r, x += width, out += width) {
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += double{x[i]} * x[i];
      const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
      for (int64_t i = 0; i < width; ++i) {
        out[i] = static_cast<float>(x[i] * scale * weights[static_cast<size_t>(i)]);
      }
    }
  }

  void linear(const float* x, const TensorView& weight, WeightLayout layout, const TensorView* bias,
              float* out, int64_t rows) override {
    const bool out_in = layout == WeightLayout::kOutIn;
    const int64_t outputs = weight.shape[out_in ? 0 : 1];
    const int64_t inputs = weight.shape[out_in ? 1 : 0];
    const std::vector<float> weights = decoded(weight);
    const std::vector<float> offsets = bias != nullptr ? decoded(*bias) : std::vector<float>();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = bias != nullptr ? offsets[static_cast<size_t>(o)] : 0;
        for (int64_t i = 0; i < inputs; ++i) {
          const int64_t at = out_in ? o * inputs + i : i * outputs + o;
          sum += double{x[r * inputs + i]} * weights[static_cast<size_t>(at)];
        }
        out[r * outputs + o] = static_cast<float>(sum);
      }
    }
  }

  void rope(const float* x, const TokenPlaces& places, const float* cos, const float* sin,
            float* out, int64_t heads, int64_t head_dim) override {
    const int64_t half = head_dim / 2;
    for (int64_t t = 0; t < std::ssize(places.lengths) * places.q_len; ++t) {
      const int64_t position = places.in_text(t / places.q_len, t % places.q_len);
      const float* c = cos + position * half;
      const float* s = sin + position * half;
      for (int64_t h = 0; h < heads; ++h, x += head_dim, out += head_dim) {
        for (int64_t d = 0; d < half; ++d) {
          const float low = x[d];
          const float high = x[d + half];
          out[d] = low * c[d] - high * s[d];
          out[d + half] = high * c[d] + low * s[d];
        }
      }
    }
  }

  void kv_write(const float* x, const TokenPlaces& places, const KvView& cache) override {
    for (int64_t b = 0; b < places.batch(); ++b) {
      for (int64_t q = 0; q < places.q_len; ++q) {
        for (int64_t h = 0; h < cache.kv_heads; ++h, x += cache.head_dim) {
          std::copy_n(x, cache.head_dim,
                      cache.f32() + places.cache_row(b) * cache.batch_stride +
                          h * cache.head_stride + places.in_cache(b, q) * cache.head_dim);
        }
      }
    }
  }

  void attention(const float* q, const KvView& keys, const KvView& values,
                 const TokenPlaces& places, const AttentionShape& shape, float* out) override {
    const int64_t group = shape.heads / shape.kv_heads;
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t i = 0; i < shape.q_len; ++i) {
        const int64_t last = places.in_cache(b, i);
        const int64_t first = std::min(places.first(b), last), row = places.cache_row(b);
        for (int64_t h = 0; h < shape.heads; ++h, q += shape.head_dim, out += shape.head_dim) {
          const int64_t kv = h / group;
          attend(q, keys.f32() + row * keys.batch_stride + kv * keys.head_stride,
                 values.f32() + row * values.batch_stride + kv * values.head_stride, first, last,
                 shape.head_dim, out);
        }
      }
    }
  }

  void last_rows(const float* x, int64_t batch, int64_t q_len, int64_t hidden,
                 float* out) override {
    for (int64_t b = 0; b < batch; ++b) {
      std::copy_n(x + ((b + 1) * q_len - 1) * hidden, hidden, out + b * hidden);
    }
  }

  void argmax(const float* x, int64_t rows, int64_t width, int32_t* out) override {
    for (int64_t r = 0; r < rows; ++r, x += width) {
      int64_t best = 0;
      for (int64_t i = 1; i < width && !std::isnan(x[best]); ++i) {
        if (x[i] > x[best] || std::isnan(x[i])) best = i;
      }
      out[r] = static_cast<int32_t>(best);
    }
  }

 private:
  // One query of one head over the positions [first, last].
  static void attend(const float* q, const float* keys, const float* values, int64_t first,
                     int64_t last, int64_t head_dim, float* out) {
    std::vector<double> weights;
    for (int64_t p = first; p <= last; ++p) {
      double dot = 0;
      for (int64_t d = 0; d < head_dim; ++d) dot += double{q[d]} * keys[p * head_dim + d];
      weights.push_back(dot / std::sqrt(static_cast<double>(head_dim)));
    }
    const double largest = *std::ranges::max_element(weights);
    double total = 0;
    for (double& w : weights) total += w = std::exp(w - largest);
    for (int64_t d = 0; d < head_dim; ++d) {
      double sum = 0;
      for (int64_t p = first; p <= last; ++p) {
        sum += weights[static_cast<size_t>(p - first)] * values[p * head_dim + d];
      }
      out[d] = static_cast<float>(sum / total);
    }
  }
};

}  // namespace

std::unique_ptr<OpLibrary> make_reference_ops() {
  return std::make_unique<ReferenceOps>();
}

}  // namespace assay::engine
