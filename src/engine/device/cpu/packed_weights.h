// Weights as the compiled executor's kernels read them: products' as panels in huge pages, merged
// biases behind each other, everything else where it lies.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/device/cpu/decoded_table.h"
#include "engine/graph/graph.h"
#include "engine/memory/huge_memory.h"
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

// Packs a weight when it is first asked for; frames that ask for the same share one copy. All
// results are valid as long as the object.
class PackedWeights {
 public:
  // Both must outlive the object.
  PackedWeights(const Weights& weights, ThreadPool& pool) : weights_(weights), pool_(pool) {}

  // A product's weight as ProductPanels has it, 64-byte aligned. An environment_error if memory
  // ends.
  Result<const std::byte*> product(const WeightSource& source, WeightLayout layout,
                                   const Packing& packing);
  // A weight that is no product's: in place, decoded to fp32 if it is in blocks, or its parts put
  // together along their first axis.
  Result<const std::byte*> plain(const WeightSource& source);
  // A weight in blocks that is read a row at a time, by rows that somebody wants before.
  Result<DecodedTable*> table(const WeightSource& source);

  bool is_of(const Weights& weights) const { return &weights == &weights_; }
  uint64_t bytes() const { return bytes_; }  // of the copies

 private:
  Result<std::byte*> allocate(size_t bytes);

  const Weights& weights_;
  ThreadPool& pool_;
  std::vector<HugeMemory> chunks_;
  size_t used_ = 0;  // of the last chunk
  uint64_t bytes_ = 0;
  std::map<std::pair<std::vector<std::string>, std::string>, const std::byte*> copies_;
  std::map<std::string, DecodedTable> tables_;  // by tensor
};

}  // namespace assay::engine
