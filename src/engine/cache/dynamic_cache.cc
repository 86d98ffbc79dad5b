// The cache that grows: new tensors a run, the old content copied.
#include <cassert>
#include <utility>

#include "engine/cache/kv_cache.h"

namespace assay::engine {
namespace {

class DynamicCache final : public KvCache {
 public:
  DynamicCache(const CacheShape& shape, BufferPool& memory)
      : KvCache(shape),
        memory_(memory),
        tensors_(static_cast<size_t>(shape.layers) * 2),
        positions_(tensors_.size(), 0) {}

  Result<KvView> extend(int64_t layer, CachePart part, int64_t kv_len) override {
    assert(kv_len >= length_ && kv_len <= shape_.capacity);
    const auto rows = static_cast<size_t>(shape_.batch * shape_.kv_heads);
    int64_t& held = positions_[index(layer, part)];
    const size_t old_row_bytes = row_bytes(length_);
    const size_t new_row_bytes = row_bytes(kv_len);
    ASSAY_TRY(Buffer tensor, memory_.allocate(rows * new_row_bytes));
    Buffer& current = tensors_[index(layer, part)];
    if (old_row_bytes > 0) {
      ASSAY_CHECK(memory_.space().copy({.to = tensor.data(),
                                        .to_pitch = new_row_bytes,
                                        .from = current.data(),
                                        .from_pitch = row_bytes(held),
                                        .row_bytes = old_row_bytes,
                                        .rows = rows}));
    }
    current = std::move(tensor);
    places_[index(layer, part)] = current.data();
    held = kv_len;
    return view(current, kv_len);
  }

  bool grows() const override { return true; }

  void reset() override {
    KvCache::reset();
    for (Buffer& tensor : tensors_) tensor = Buffer();
    std::ranges::fill(places_, nullptr);
  }

 private:
  BufferPool& memory_;
  std::vector<Buffer> tensors_;  // by index(): [batch, kv_heads, positions_, head_dim]
  // More than length() behind a run that failed.
  std::vector<int64_t> positions_;
};

}  // namespace

std::unique_ptr<KvCache> make_dynamic_cache(const CacheShape& shape, BufferPool& memory) {
  return std::make_unique<DynamicCache>(shape, memory);
}

}  // namespace assay::engine
