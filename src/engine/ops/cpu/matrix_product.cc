// Each thread of the pool calls oneDNN for tiles of outputs, and oneDNN is told to use one thread:
// so no OpenMP threads exist that would spin beside the pool's. Weights [out, in] go through the
// matmul primitive, whose fast kernel (brgemm in oneDNN 2.6) wants dense operands and results,
// hence a copy of the result; for weights [in, out] that kernel's own packing loses up to half of
// the speed, and sgemm doesn't. Weights of bf16 are multiplied as they are, with x rounded to bf16,
// where the processor has the instruction; else they are widened.
#include "engine/ops/cpu/matrix_product.h"

#include <algorithm>
#include <compare>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/pointwise.h"
#include "engine/ops/element.h"

// Two functions of the OpenMP runtime that oneDNN brings; its header comes with one compiler only.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace assay::engine::cpu {
namespace {

constexpr int64_t kTileOutputs = 256;  // weights of a tile: 0.8 to 8 MB at the models' widths
constexpr int64_t kOutputGrain = 64;   // of a thread's share: whole vectors and cache lines
constexpr size_t kMaxPrimitives = 256;

// OpenMP's thread count is the calling thread's own: set to one for oneDNN, then put back.
class OneOmpThread {
 public:
  OneOmpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOmpThread() { omp_set_num_threads(before_); }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  int before_;
};

struct Product {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

}  // namespace

// A thread's state between calls: compiled products by shape, and scratch.
struct MatrixProduct::Worker {
  // The weight's element (i, o) lies at i * input_stride + o * output_stride.
  struct Key {
    dnnl::memory::data_type dtype;
    int64_t rows, inputs, outputs, input_stride, output_stride;
    auto operator<=>(const Key&) const = default;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Product> products;
  std::vector<float> weights;  // a tile as fp32
  std::vector<float> results;  // [rows, tile outputs]

  const Product& product(const Key& key) {
    if (const auto found = products.find(key); found != products.end()) return found->second;
    if (products.size() >= kMaxPrimitives) products.clear();  // endlessly many shapes: start anew
    using Tag = dnnl::memory::format_tag;
    const dnnl::memory::desc source({key.rows, key.inputs}, key.dtype, Tag::ab);
    const dnnl::memory::desc weight({key.inputs, key.outputs}, key.dtype,
                                    dnnl::memory::dims{key.input_stride, key.output_stride});
    const dnnl::memory::desc target({key.rows, key.outputs}, dnnl::memory::data_type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(source, weight, target),
                                                   engine);
    return products.emplace(key, Product{description, dnnl::matmul(description)}).first->second;
  }

  // out[.., begin + i] = x . weight[begin + i, ..]^T for i < count.
  void multiply_out_in(const float* x, const TensorView& weight, float* out, int64_t rows,
                       int64_t begin, int64_t count) {
    const int64_t inputs = weight.shape[1];
    const float* tile = as_f32(weight, begin, count);
    multiply({dnnl::memory::data_type::f32, rows, inputs, count, 1, inputs}, x, tile, out + begin,
             weight.shape[0]);
  }

  // Either layout, weights and x of bf16.
  void multiply_bf16(const uint16_t* x, const TensorView& weight, WeightLayout layout, float* out,
                     int64_t rows, int64_t begin, int64_t count) {
    const bool out_in = layout == WeightLayout::kOutIn;
    const int64_t inputs = weight.shape[out_in ? 1 : 0];
    const int64_t outputs = weight.shape[out_in ? 0 : 1];
    multiply({dnnl::memory::data_type::bf16, rows, inputs, count, out_in ? 1 : outputs,
              out_in ? inputs : 1},
             x, weight.data + bytes(weight, out_in ? begin * inputs : begin), out + begin, outputs);
  }

  // out[.., begin + i] = x . weight[.., begin + i] for i < count.
  bool multiply_in_out(const float* x, const TensorView& weight, float* out, int64_t rows,
                       int64_t begin, int64_t count) {
    const int64_t inputs = weight.shape[0];
    const int64_t outputs = weight.shape[1];
    if (weight.format == WeightFormat::kF32) {
      return small_product(x, inputs, weight.f32() + begin, outputs, false, out + begin, outputs,
                           rows, count, inputs);
    }
    weights.resize(std::max(weights.size(), static_cast<size_t>(count * inputs)));
    for (int64_t i = 0; i < inputs; ++i) {
      convert_to_f32(weight.data + bytes(weight, i * outputs + begin), weight.element(),
                     weights.data() + i * count, count);
    }
    return small_product(x, inputs, weights.data(), count, false, out + begin, outputs, rows, count,
                         inputs);
  }

 private:
  // out [rows, pitch]: the first key.outputs of each row.
  void multiply(const Key& key, const void* x, const void* weight, float* out, int64_t pitch) {
    const Product& p = product(key);
    results.resize(std::max(results.size(), static_cast<size_t>(key.rows * key.outputs)));
    // oneDNN's memory objects take writable pointers also for memory that is only read.
    auto* source = const_cast<void*>(x);
    auto* matrix = const_cast<void*>(weight);
    p.primitive.execute(
        stream, {{DNNL_ARG_SRC, dnnl::memory(p.description.src_desc(), engine, source)},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(p.description.weights_desc(), engine, matrix)},
                 {DNNL_ARG_DST, dnnl::memory(p.description.dst_desc(), engine, results.data())}});
    stream.wait();
    for (int64_t r = 0; r < key.rows; ++r) {
      std::copy_n(results.data() + r * key.outputs, key.outputs, out + r * pitch);
    }
  }

  static size_t bytes(const TensorView& view, int64_t elements) {
    return static_cast<size_t>(elements) * dtype_size_bytes(view.element());
  }

  // Rows of the weight as fp32: in place if they are.
  const float* as_f32(const TensorView& weight, int64_t row, int64_t rows) {
    if (weight.format == WeightFormat::kF32) {
      return reinterpret_cast<const float*>(weight.row(row));
    }
    const int64_t count = rows * weight.row_values();
    weights.resize(std::max(weights.size(), static_cast<size_t>(count)));
    if (weight.in_blocks()) {
      for (int64_t i = 0; i < rows; ++i) {
        decode_row(weight, row + i, weights.data() + i * weight.row_values());
      }
    } else {
      convert_to_f32(weight.row(row), weight.element(), weights.data(), count);
    }
    return weights.data();
  }
};

namespace {

// out[r, i] += bias[i] for i in [begin, end).
void add_bias(const TensorView& bias, float* out, int64_t rows, int64_t outputs, int64_t begin,
              int64_t end) {
  std::vector<float> offsets;
  for (int64_t i = begin; i < end; ++i) {
    offsets.push_back(load_element(bias.data, bias.element(), i));
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* row = out + r * outputs + begin;
    add(row, offsets.data(), row, end - begin);
  }
}

}  // namespace

MatrixProduct::MatrixProduct(ThreadPool& pool, Rounding rounding)
    : pool_(pool), rounding_(rounding), workers_(pool.size()) {}

MatrixProduct::~MatrixProduct() = default;

// Into rounded_.
void MatrixProduct::round(const float* x, int64_t count) {
  rounded_.resize(std::max(rounded_.size(), static_cast<size_t>(count)));
  const auto threads = static_cast<int64_t>(workers_.size());
  pool_.run([&](size_t thread) {
    const int64_t begin = count * static_cast<int64_t>(thread) / threads;
    const int64_t end = count * static_cast<int64_t>(thread + 1) / threads;
    round_to_bf16(x + begin, end - begin, rounded_.data() + begin);
  });
}

bool MatrixProduct::run(const float* x, const TensorView& weight, WeightLayout layout,
                        const TensorView* bias, float* out, int64_t rows) {
  const bool out_in = layout == WeightLayout::kOutIn;
  const int64_t outputs = weight.shape[out_in ? 0 : 1];
  const auto threads = static_cast<int64_t>(workers_.size());
  const int64_t grains = (outputs + kOutputGrain - 1) / kOutputGrain;
  // fp32 weights [in, out] are read where they lie, so a share needs no tiles.
  const int64_t step = !out_in && weight.format == WeightFormat::kF32 ? outputs : kTileOutputs;
  const bool dot =
      rounding_ == Rounding::kFastest && weight.format == WeightFormat::kBF16 && has_bf16_dot();
  if (dot) round(x, rows * weight.shape[out_in ? 1 : 0]);
  std::vector<char> failed(workers_.size(), 0);
  const auto share = [&](size_t thread) {
    const auto index = static_cast<int64_t>(thread);
    const int64_t first = std::min(outputs, grains * index / threads * kOutputGrain);
    const int64_t end = std::min(outputs, grains * (index + 1) / threads * kOutputGrain);
    try {
      const OneOmpThread guard;
      if (!workers_[thread]) workers_[thread] = std::make_unique<Worker>();
      Worker& worker = *workers_[thread];
      for (int64_t begin = first; begin < end; begin += step) {
        const int64_t count = std::min(step, end - begin);
        if (dot) {
          worker.multiply_bf16(rounded_.data(), weight, layout, out, rows, begin, count);
        } else if (out_in) {
          worker.multiply_out_in(x, weight, out, rows, begin, count);
        } else if (!worker.multiply_in_out(x, weight, out, rows, begin, count)) {
          failed[thread] = 1;
        }
      }
      if (bias != nullptr && first < end) add_bias(*bias, out, rows, outputs, first, end);
    } catch (const std::exception&) {  // dnnl::error, bad_alloc
      failed[thread] = 1;
    }
  };
  pool_.run(share);
  return std::ranges::find(failed, 1) == failed.end();
}

bool small_product(const float* a, int64_t lda, const float* b, int64_t ldb, bool transpose_b,
                   float* c, int64_t ldc, int64_t m, int64_t n, int64_t k) {
  const OneOmpThread guard;
  return dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc) ==
         dnnl_success;
}

}  // namespace assay::engine::cpu
