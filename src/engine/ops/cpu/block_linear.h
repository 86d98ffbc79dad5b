// Whole products with weights in blocks, shared out over a pool: the eager executor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/process/thread_pool.h"
#include "engine/memory/huge_memory.h"
#include "engine/weight_format.h"

namespace assay::engine::cpu {

// A packed weight [outputs, inputs].
struct BlockWeight {
  WeightFormat format = WeightFormat::kQ8_0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  const std::byte* tiles = nullptr;      // quantized_layout.h, those of all outputs
  const int32_t* input_order = nullptr;  // TensorView::input_order
};

class BlockLinear {
 public:
  // The pool must outlive the object.
  explicit BlockLinear(ThreadPool& pool) : pool_(pool), products_(pool.size()) {}

  // OpLibrary::linear. An environment_error if memory ends.
  Status run(const float* x, const BlockWeight& weight, const TensorView* bias, float* out,
             int64_t rows);

 private:
  Status reserve(size_t x_bytes, size_t scratch_bytes);

  ThreadPool& pool_;
  HugeMemory x_;                              // rows as BlockInputs makes them
  HugeMemory scratch_;                        // of all threads
  size_t scratch_bytes_ = 0;                  // a thread
  std::vector<std::vector<float>> products_;  // by thread: of a tile that isn't whole
};

}  // namespace assay::engine::cpu
