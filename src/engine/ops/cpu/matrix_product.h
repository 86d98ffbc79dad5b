// Products of many rows with a weight matrix through oneDNN, each thread on outputs of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "base/process/thread_pool.h"
#include "engine/ops/ops.h"
#include "engine/tensor.h"

namespace assay::engine::cpu {

class MatrixProduct {
 public:
  // The pool must outlive the object.
  MatrixProduct(ThreadPool& pool, Rounding rounding);
  ~MatrixProduct();

  // OpLibrary::linear. False if oneDNN can't (no memory, no implementation); `out` is then
  // undefined.
  [[nodiscard]] bool run(const float* x, const TensorView& weight, WeightLayout layout,
                         const TensorView* bias, float* out, int64_t rows);

 private:
  void round(const float* x, int64_t count);

  struct Worker;
  ThreadPool& pool_;
  Rounding rounding_;
  std::vector<std::unique_ptr<Worker>> workers_;  // one a thread of the pool
  std::vector<uint16_t> rounded_;                 // x as bf16
};

// Row-major c = a . b (or a . b^T), on the calling thread alone. Leading dimensions in elements.
// False if oneDNN can't.
[[nodiscard]] bool small_product(const float* a, int64_t lda, const float* b, int64_t ldb,
                                 bool transpose_b, float* c, int64_t ldc, int64_t m, int64_t n,
                                 int64_t k);

}  // namespace assay::engine::cpu
