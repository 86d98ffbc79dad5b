// The kernels of one step in their order, run as stages of the pool: its threads share each, and
// begin the next when all of it is done.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/codegen/cpu/kernel_functions.h"
#include "engine/memory/huge_memory.h"

namespace assay::engine {

// The data of a product whose sums are made here, beside its functions.
struct ProductStage {
  int64_t inputs = 0;
  Packing packing;
  const std::byte* panels = nullptr;  // of blocks: tiles (ops/cpu/quantized_layout.h)
  WeightFormat format = WeightFormat::kF32;
  const int32_t* input_order = nullptr;  // TensorView::input_order
  bool in_blocks() const { return traits(format).in_blocks(); }
  size_t x = 0;  // the buffer of x, without a prologue
};

struct Stage {
  KernelFunctions functions;
  std::vector<void*> buffers;
  Dim rows = Dim(1);
  std::optional<ProductStage> product;
};

// Memory that a run with some sizes needs beside the buffers.
struct StageMemory {
  int64_t scratch_floats = 0;          // a thread
  std::vector<int64_t> shared_floats;  // by stage: 0, or of all threads
};

class Schedule {
 public:
  // Products of more rows than this go through panels; fewer are read-bound, and a kernel's own
  // unless the weight is in blocks.
  static constexpr int64_t kMatvecRows = 8;

  // The pool must outlive the object.
  Schedule(std::vector<Stage> stages, ThreadPool& pool);

  std::vector<Stage>& stages() { return stages_; }
  size_t threads() const { return pool_.size(); }

  // Makes room for runs of these sizes and any with a smaller kv_len, beside the room that earlier
  // calls made. An environment_error if memory ends.
  Status reserve(const StageMemory& memory, const DimValues& dims);
  // Every buffer is bound; reserved for `dims`. Allocates nothing.
  void run(const DimValues& dims, int64_t capacity);

 private:
  // The pieces of a product of many rows, which threads take one at a time.
  struct Pieces {
    int64_t rows = 0;
    int64_t row_step = 0;
    int64_t tiles = 0;
    int64_t count = 0;
  };
  // Rows of x as the panel product takes them.
  struct Inputs {
    const void* data = nullptr;
    DType dtype = DType::kF32;
    int64_t pitch = 0;  // elements
  };
  // A stage of the pool's run. A product of many rows takes two if x has to be made first.
  struct Leg {
    enum class Work { kWhole, kFewRows, kMakeX, kManyRows };
    size_t stage = 0;
    int64_t rows = 0;
    Work work = Work::kWhole;
  };
  // True if the product reads x from x_ when it has many rows.
  static bool is_made(const Stage& stage);
  Pieces pieces_of(const Stage& stage, int64_t rows) const;
  Status allocate();
  // `dims`: as KernelArgs has them.
  void work(const Leg& leg, size_t share, const std::array<int64_t, 4>& dims);
  // Row `row` of x where the stage's prologue puts it (`made`), or where its buffer has it.
  static const float* row_of_x(const Stage& stage, const KernelArgs& args, int64_t row,
                               float* made);
  void few_rows(const Stage& stage, const KernelArgs& args, int64_t rows, size_t share);
  void make_x(const Stage& stage, const KernelArgs& args, int64_t rows, size_t share);
  void many_rows(size_t index, const KernelArgs& args, int64_t rows);
  void multiply_piece(const Stage& stage, const KernelArgs& args, const Inputs& x,
                      const Pieces& pieces, int64_t piece, int64_t next);

  std::vector<Stage> stages_;
  ThreadPool& pool_;
  std::vector<Leg> legs_;                         // of the run at hand
  std::vector<std::atomic<int64_t>> next_piece_;  // by stage
  std::vector<float*> shared_;                    // by stage
  HugeMemory memory_;
  // Floats that there is room for: each stage's shared scratch, x_, and a share's scratch, whose
  // first part is the kernels' own.
  std::vector<size_t> shared_floats_;
  size_t x_floats_ = 0;
  size_t kernel_floats_ = 0;
  size_t product_floats_ = 0;
  float* shares_memory_ = nullptr;
  float* x_ = nullptr;  // rows of the product at hand, that a prologue made or that were rounded
};

}  // namespace assay::engine
