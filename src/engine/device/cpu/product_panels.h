// One product's weight as kernels read it, packed a panel at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/process/thread_pool.h"
#include "engine/graph/graph.h"
#include "engine/model/weights.h"

namespace assay::engine {

// One product's weight, laid out panel by panel, wherever each of them goes.
class ProductPanels {
 public:
  // [out, in] or [in, out] as `layout` says, in its own type. Blocks, [out, in] alone, are tiles
  // (ops/cpu/quantized_layout.h) in panels, and in rows slots (codegen/cuda/block_slots.h). The
  // weights must outlive the object.
  ProductPanels(const Weights& weights, const WeightSource& source, WeightLayout layout,
                const Packing& packing);

  int64_t count() const { return count_; }
  size_t bytes() const { return bytes_; }  // of each
  // Panels from the first on to memory of so many; its bytes become all of theirs.
  void pack(ThreadPool& pool, int64_t first, int64_t panels, std::byte* to) const;

 private:
  // The format of the tiles or slots; absent: elements.
  std::optional<WeightFormat> blocks() const;

  std::vector<TensorView> tensors_;
  std::vector<const RowReader*> readers_;  // Weights::rows() of each
  WeightLayout layout_;
  Packing packing_;
  int64_t count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace assay::engine
