// The cache that is allocated once: a run only learns where its positions start.
#include <cassert>
#include <utility>

#include "engine/cache/kv_cache.h"

namespace assay::engine {
namespace {

class StaticCache final : public KvCache {
 public:
  StaticCache(const CacheShape& shape, std::vector<Buffer> tensors)
      : KvCache(shape), tensors_(std::move(tensors)) {}

  Result<KvView> extend(int64_t layer, CachePart part, int64_t q_len) override {
    assert(length_ + q_len <= shape_.capacity);
    (void)q_len;
    return KvView{.data = tensors_[index(layer, part)].f32(),
                  .batch = shape_.batch,
                  .kv_heads = shape_.kv_heads,
                  .capacity = shape_.capacity,
                  .head_dim = shape_.head_dim,
                  .batch_stride = shape_.kv_heads * shape_.capacity * shape_.head_dim,
                  .head_stride = shape_.capacity * shape_.head_dim};
  }

 private:
  std::vector<Buffer> tensors_;  // by index(): [batch, kv_heads, capacity, head_dim]
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_static_cache(const CacheShape& shape, BufferPool& memory) {
  const auto bytes =
      static_cast<size_t>(shape.batch * shape.kv_heads * shape.capacity * shape.head_dim) *
      sizeof(float);
  std::vector<Buffer> tensors;
  for (int64_t i = 0; i < shape.layers * 2; ++i) {
    ASSAY_TRY(Buffer tensor, memory.allocate(bytes));
    tensors.push_back(std::move(tensor));
  }
  return std::make_unique<StaticCache>(shape, std::move(tensors));
}

}  // namespace assay::engine
