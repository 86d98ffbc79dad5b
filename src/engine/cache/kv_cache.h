// The keys and values of past positions, kept from one run of a graph to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/memory/buffer_pool.h"
#include "engine/ops/ops.h"

namespace assay::engine {

enum class CacheKind {
  kDynamic,  // new tensors at every step, one position longer, as transformers' DynamicCache
  kStatic,   // allocated once at the capacity; the position is data
};

struct CacheShape {
  int64_t layers = 0;
  int64_t batch = 0;  // rows
  int64_t kv_heads = 0;
  int64_t capacity = 0;  // positions of a row
  int64_t head_dim = 0;
  DType dtype = DType::kF32;  // of the elements: Device::cache_type()

  friend bool operator==(const CacheShape&, const CacheShape&) = default;
};

// A run calls extend() once for every layer and part, or takes places() of a cache that doesn't
// grow, then commit(). Which positions of a row are in use is its caller's business.
class KvCache {
 public:
  virtual ~KvCache() = default;

  // The layer's tensor with room for positions [0, kv_len) of each row, with those below length()
  // as they were. At most `capacity` positions, and of a cache that grows at least length():
  // assert. Views of the same layer and part from before are void. A run that failed before it
  // commits may be made again, by any executor.
  virtual Result<KvView> extend(int64_t layer, CachePart part, int64_t kv_len) = 0;

  // True if every run makes new tensors, so that addresses and capacity change with the length.
  virtual bool grows() const = 0;
  // Where each layer's keys lie, and its values behind them, [layers * 2]: as extend() gave them
  // last, null before that and behind reset(). A cache that doesn't grow has them from the start.
  std::span<std::byte* const> places() const { return places_; }

  // Later runs find the positions below this one as this run has written them.
  void commit(int64_t kv_len) { length_ = std::max(length_, kv_len); }
  int64_t length() const { return length_; }  // positions in use by the longest row
  const CacheShape& shape() const { return shape_; }

  // Forgets the past; allocated tensors stay.
  virtual void reset() { length_ = 0; }

 protected:
  explicit KvCache(const CacheShape& shape)
      : shape_(shape), places_(static_cast<size_t>(shape.layers) * 2) {}
  // Bytes of so many positions of one head.
  size_t row_bytes(int64_t positions) const {
    return static_cast<size_t>(positions * shape_.head_dim) * dtype_size_bytes(shape_.dtype);
  }
  // A view of this tensor, which has room for so many positions a head.
  KvView view(Buffer& tensor, int64_t capacity) const {
    return {.data = tensor.data(),
            .dtype = shape_.dtype,
            .batch = shape_.batch,
            .kv_heads = shape_.kv_heads,
            .capacity = capacity,
            .head_dim = shape_.head_dim,
            .batch_stride = shape_.kv_heads * capacity * shape_.head_dim,
            .head_stride = capacity * shape_.head_dim};
  }
  size_t index(int64_t layer, CachePart part) const {
    return static_cast<size_t>(layer) * 2 + (part == CachePart::kValues ? 1 : 0);
  }

  CacheShape shape_;
  int64_t length_ = 0;
  std::vector<std::byte*> places_;  // by index()
};

// transformers' DynamicCache: every run makes new tensors that are q_len positions longer and
// copies the old ones into them (torch.cat along the positions), so that a step moves the whole
// cache once more and no two steps see the same shape. This cost is transformers' own; it is not
// made smaller here.
std::unique_ptr<KvCache> make_dynamic_cache(const CacheShape& shape, BufferPool& memory);

// transformers' StaticCache: tensors of the full capacity, allocated here and never again; fixed
// addresses.
Result<std::unique_ptr<KvCache>> make_static_cache(const CacheShape& shape, BufferPool& memory);

}  // namespace assay::engine
