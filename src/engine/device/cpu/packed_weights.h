// Weights as the compiled executor's kernels read them: products' as panels in huge pages, merged
// biases behind each other, everything else where it lies.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/device/cpu/decoded_table.h"
#include "engine/device/cpu/product_panels.h"
#include "engine/device/cpu/weight_cache.h"
#include "engine/graph/graph.h"
#include "engine/memory/huge_memory.h"
#include "engine/model/weights.h"

namespace assay::engine {

// A product's weight, and how it is to be packed.
struct ProductWeight {
  WeightSource source;
  WeightLayout layout = WeightLayout::kOutIn;
  Packing packing;
};

// Packs a weight when it is first asked for; frames that ask for the same share one copy. All
// results are valid as long as the object.
class PackedWeights {
 public:
  // Both must outlive the object.
  PackedWeights(const Weights& weights, ThreadPool& pool) : weights_(weights), pool_(pool) {}

  // All of these weights at once. With a cache they lie in one of its files, which is mapped if it
  // is there, and made if not; a file that can't be made leaves a line in `notes`, and the weights
  // are packed in memory. Errors as product() has them.
  Status pack(std::span<const ProductWeight> products, WeightCache* cache,
              std::vector<std::string>& notes);

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
  uint64_t bytes() const { return bytes_; }              // of the copies
  uint64_t found_bytes() const { return found_bytes_; }  // of those in a file that was there

 private:
  using Copy = std::pair<std::vector<std::string>, std::string>;  // of tensors, packed so
  struct Place {
    const ProductWeight& product;
    ProductPanels panels;
    size_t at = 0;  // in the file
  };
  std::vector<Place> places(std::span<const ProductWeight> products) const;
  WeightFileKey key_of(const std::vector<Place>& places, const std::string& checkpoint) const;
  Result<MappedFile> make_file(const std::vector<Place>& places, const WeightFileKey& key,
                               const std::string& checkpoint, WeightCache& cache) const;
  Status use_file(const std::vector<Place>& places, WeightCache& cache);
  void page_in(const WeightSource& source) const;
  Result<std::byte*> allocate(size_t bytes);

  const Weights& weights_;
  ThreadPool& pool_;
  std::vector<HugeMemory> chunks_;
  size_t used_ = 0;  // of the last chunk
  uint64_t bytes_ = 0;
  uint64_t found_bytes_ = 0;
  std::vector<MappedFile> files_;
  std::map<Copy, const std::byte*> copies_;
  std::map<std::string, DecodedTable> tables_;  // by tensor
};

}  // namespace assay::engine
