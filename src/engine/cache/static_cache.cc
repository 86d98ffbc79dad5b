// The cache that is allocated once: a run only learns where its positions start.
#include <cassert>
#include <utility>

#include "engine/cache/kv_cache.h"

namespace assay::engine {
namespace {

class StaticCache final : public KvCache {
 public:
  StaticCache(const CacheShape& shape, std::vector<Buffer> tensors)
      : KvCache(shape), tensors_(std::move(tensors)) {
    std::ranges::transform(tensors_, places_.begin(), &Buffer::data);
  }

  Result<KvView> extend(int64_t layer, CachePart part, int64_t kv_len) override {
    assert(kv_len <= shape_.capacity);
    (void)kv_len;
    return view(tensors_[index(layer, part)], shape_.capacity);
  }

  bool grows() const override { return false; }

 private:
  std::vector<Buffer> tensors_;  // by index(): [batch, kv_heads, capacity, head_dim]
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_static_cache(const CacheShape& shape, BufferPool& memory) {
  const auto bytes =
      static_cast<size_t>(shape.batch * shape.kv_heads * shape.capacity * shape.head_dim) *
      dtype_size_bytes(shape.dtype);
  std::vector<Buffer> tensors;
  for (int64_t i = 0; i < shape.layers * 2; ++i) {
    ASSAY_TRY(Buffer tensor, memory.allocate(bytes));
    tensors.push_back(std::move(tensor));
  }
  return std::make_unique<StaticCache>(shape, std::move(tensors));
}

}  // namespace assay::engine
