// Each thread of the pool calls oneDNN for tiles of outputs, and oneDNN is told to use one thread:
// so no OpenMP threads exist that would spin beside the pool's. Operands and result of a call are
// dense, because oneDNN 2.6 has its fast kernels (brgemm) for dense matrices only: hence the
// copies, which cost a few per cent, and which are also where 16-bit weights become fp32.
#include "engine/ops/cpu/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <vector>

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

// What a thread keeps between calls: compiled products by shape, and scratch.
struct MatrixProduct::Worker {
  using Key = std::tuple<int64_t, int64_t, int64_t, bool>;  // rows, inputs, outputs, transposed

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Product> products;
  std::vector<float> weights;  // a tile as fp32
  std::vector<float> results;  // [rows, tile outputs]

  const Product& product(int64_t rows, int64_t inputs, int64_t outputs, bool transposed) {
    const Key key(rows, inputs, outputs, transposed);
    if (const auto found = products.find(key); found != products.end()) return found->second;
    if (products.size() >= kMaxPrimitives) products.clear();  // endlessly many shapes: start anew
    using Tag = dnnl::memory::format_tag;
    const auto f32 = dnnl::memory::data_type::f32;
    const dnnl::memory::desc source({rows, inputs}, f32, Tag::ab);
    const dnnl::memory::desc weight({inputs, outputs}, f32, transposed ? Tag::ba : Tag::ab);
    const dnnl::memory::desc target({rows, outputs}, f32, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(source, weight, target),
                                                   engine);
    return products.emplace(key, Product{description, dnnl::matmul(description)}).first->second;
  }

  void multiply(const float* x, const float* weight, bool transposed, int64_t rows, int64_t inputs,
                int64_t outputs) {
    const Product& p = product(rows, inputs, outputs, transposed);
    results.resize(std::max(results.size(), static_cast<size_t>(rows * outputs)));
    // oneDNN's memory objects take writable pointers also for what is only read.
    auto* source = const_cast<float*>(x);
    auto* matrix = const_cast<float*>(weight);
    p.primitive.execute(
        stream, {{DNNL_ARG_SRC, dnnl::memory(p.description.src_desc(), engine, source)},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(p.description.weights_desc(), engine, matrix)},
                 {DNNL_ARG_DST, dnnl::memory(p.description.dst_desc(), engine, results.data())}});
    stream.wait();
  }

  // The weights of the outputs [begin, begin + count) as dense fp32: in place if they are.
  const float* tile(const TensorView& weight, WeightLayout layout, int64_t begin, int64_t count) {
    const size_t element = dtype_size_bytes(weight.dtype);
    if (layout == WeightLayout::kOutIn) {
      const int64_t inputs = weight.shape[1];
      const std::byte* first = weight.data + static_cast<size_t>(begin * inputs) * element;
      if (weight.dtype == DType::kF32) return reinterpret_cast<const float*>(first);
      weights.resize(std::max(weights.size(), static_cast<size_t>(count * inputs)));
      convert_to_f32(first, weight.dtype, weights.data(), count * inputs);
      return weights.data();
    }
    const int64_t inputs = weight.shape[0];
    weights.resize(std::max(weights.size(), static_cast<size_t>(count * inputs)));
    for (int64_t i = 0; i < inputs; ++i) {
      convert_to_f32(weight.data + static_cast<size_t>(i * weight.shape[1] + begin) * element,
                     weight.dtype, weights.data() + i * count, count);
    }
    return weights.data();
  }
};

namespace {

// out[r, begin + i] = results[r, i] + bias[begin + i].
void store_tile(const float* results, const TensorView* bias, float* out, int64_t rows,
                int64_t outputs, int64_t begin, int64_t count) {
  std::vector<float> offsets;
  for (int64_t i = 0; bias != nullptr && i < count; ++i) {
    offsets.push_back(load_element(bias->data, bias->dtype, begin + i));
  }
  for (int64_t r = 0; r < rows; ++r, results += count) {
    float* to = out + r * outputs + begin;
    if (bias != nullptr) {
      add(results, offsets.data(), to, count);
    } else {
      std::memcpy(to, results, static_cast<size_t>(count) * sizeof(float));
    }
  }
}

}  // namespace

MatrixProduct::MatrixProduct(ThreadPool& pool) : pool_(pool), workers_(pool.size()) {}

MatrixProduct::~MatrixProduct() = default;

bool MatrixProduct::run(const float* x, const TensorView& weight, WeightLayout layout,
                        const TensorView* bias, float* out, int64_t rows) {
  const bool transposed = layout == WeightLayout::kOutIn;
  const int64_t outputs = weight.shape[transposed ? 0 : 1];
  const int64_t inputs = weight.shape[transposed ? 1 : 0];
  const auto threads = static_cast<int64_t>(workers_.size());
  const int64_t grains = (outputs + kOutputGrain - 1) / kOutputGrain;
  std::vector<char> failed(workers_.size(), 0);
  const auto share = [&](size_t thread) {
    const auto index = static_cast<int64_t>(thread);
    const int64_t end = std::min(outputs, grains * (index + 1) / threads * kOutputGrain);
    try {
      const OneOmpThread guard;
      if (!workers_[thread]) workers_[thread] = std::make_unique<Worker>();
      Worker& worker = *workers_[thread];
      for (int64_t begin = grains * index / threads * kOutputGrain; begin < end;
           begin += kTileOutputs) {
        const int64_t count = std::min(kTileOutputs, end - begin);
        worker.multiply(x, worker.tile(weight, layout, begin, count), transposed, rows, inputs,
                        count);
        store_tile(worker.results.data(), bias, out, rows, outputs, begin, count);
      }
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
