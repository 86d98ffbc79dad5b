#include "engine/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace assay::engine {
namespace {

constexpr CacheShape kShape{.layers = 2, .batch = 2, .kv_heads = 3, .capacity = 8, .head_dim = 4};

std::unique_ptr<KvCache> make_cache(CacheKind kind, BufferPool& memory) {
  if (kind == CacheKind::kDynamic) return make_dynamic_cache(kShape, memory);
  return *make_static_cache(kShape, memory);
}

float& at(const KvView& view, int64_t b, int64_t h, int64_t p, int64_t d) {
  return view.f32()[b * view.batch_stride + h * view.head_stride + p * view.head_dim + d];
}

float stamp(int64_t layer, CachePart part, int64_t b, int64_t h, int64_t p, int64_t d) {
  return static_cast<float>(
      ((((layer * 2 + static_cast<int64_t>(part)) * 2 + b) * 3 + h) * 8 + p) * 4 + d);
}

// Calls visit(b, h, p, d) for every element of positions [begin, end).
template <typename Visit>
void each(int64_t begin, int64_t end, const Visit& visit) {
  for (int64_t b = 0; b < kShape.batch; ++b) {
    for (int64_t h = 0; h < kShape.kv_heads; ++h) {
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t d = 0; d < kShape.head_dim; ++d) visit(b, h, p, d);
      }
    }
  }
}

// Runs of these lengths, each stamping its own positions; checks all positions at every run.
void run_and_check(KvCache& cache, const std::vector<int64_t>& q_lens) {
  for (const int64_t q_len : q_lens) {
    const int64_t length = cache.length();
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
        const KvView view = *cache.extend(layer, part, length + q_len);
        ASSERT_GE(view.capacity, length + q_len);
        const auto place = static_cast<size_t>(layer * 2 + (part == CachePart::kValues));
        ASSERT_EQ(cache.places()[place], static_cast<std::byte*>(view.data));
        each(length, length + q_len, [&](int64_t b, int64_t h, int64_t p, int64_t d) {
          at(view, b, h, p, d) = stamp(layer, part, b, h, p, d);
        });
        each(0, length + q_len, [&](int64_t b, int64_t h, int64_t p, int64_t d) {
          ASSERT_EQ(at(view, b, h, p, d), stamp(layer, part, b, h, p, d));
        });
      }
    }
    cache.commit(length + q_len);
  }
}

class KvCacheTest : public ::testing::TestWithParam<CacheKind> {
 protected:
  BufferPool memory_;
  std::unique_ptr<KvCache> cache_ = make_cache(GetParam(), memory_);
};

TEST_P(KvCacheTest, KeepsOldPositionsAsItGrows) {
  run_and_check(*cache_, {3, 1, 1, 2, 1});
  EXPECT_EQ(cache_->length(), 8);
}

TEST_P(KvCacheTest, ResetStartsAgain) {
  run_and_check(*cache_, {5, 1});
  cache_->reset();
  EXPECT_EQ(cache_->length(), 0);
  run_and_check(*cache_, {2, 1});
}

TEST_P(KvCacheTest, ARunThatFailedIsMadeAgain) {
  run_and_check(*cache_, {3, 1});
  for (int64_t layer = 0; layer < 2; ++layer) {  // and doesn't commit
    ASSERT_TRUE(cache_->extend(layer, CachePart::kKeys, cache_->length() + 2));
  }
  run_and_check(*cache_, {1, 1});
}

INSTANTIATE_TEST_SUITE_P(Kinds, KvCacheTest,
                         ::testing::Values(CacheKind::kDynamic, CacheKind::kStatic));

TEST(DynamicCache, EveryRunMakesNewTensorsOneLonger) {
  BufferPool memory;
  const auto cache = make_cache(CacheKind::kDynamic, memory);
  const KvView first = *cache->extend(0, CachePart::kKeys, 3);
  EXPECT_EQ(first.capacity, 3);
  cache->commit(3);
  const KvView second = *cache->extend(0, CachePart::kKeys, 4);
  EXPECT_EQ(second.capacity, 4);
  EXPECT_NE(second.data, first.data);
  cache->reset();
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(KvCacheTypes, OfSixteenBitsTakeHalfTheMemory) {
  CacheShape shape = kShape;
  shape.capacity = 64;
  for (const CacheKind kind : {CacheKind::kDynamic, CacheKind::kStatic}) {
    std::map<DType, uint64_t> bytes;
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      shape.dtype = dtype;
      BufferPool memory;
      const auto cache = kind == CacheKind::kDynamic ? make_dynamic_cache(shape, memory)
                                                     : *make_static_cache(shape, memory);
      for (const int64_t q_len : {32, 32}) {
        const int64_t kv_len = cache->length() + q_len;
        const KvView view = *cache->extend(0, CachePart::kKeys, kv_len);
        EXPECT_EQ(view.dtype, dtype);
        const auto elements = static_cast<size_t>(view.batch * view.batch_stride);
        auto* first = static_cast<std::byte*>(view.data);
        const size_t written = elements * dtype_size_bytes(dtype);
        if (cache->length() == 0) std::fill_n(first, written, std::byte{7});
        EXPECT_EQ(first[0], std::byte{7}) << "an old position";
        cache->commit(kv_len);
      }
      bytes[dtype] = memory.used_bytes();
    }
    EXPECT_EQ(bytes[DType::kF32], 2 * bytes[DType::kF16]);
    EXPECT_EQ(bytes[DType::kF16], bytes[DType::kBF16]);
  }
}

TEST(StaticCache, AddressesNeverChange) {
  BufferPool memory;
  const auto cache = make_cache(CacheKind::kStatic, memory);
  const uint64_t allocations = memory.system_allocations();
  const void* address = cache->extend(1, CachePart::kValues, 3)->data;
  cache->commit(3);
  EXPECT_EQ(cache->extend(1, CachePart::kValues, 4)->data, address);
  EXPECT_EQ(cache->extend(1, CachePart::kValues, 2)->data, address) << "of a shorter row";
  cache->commit(2);
  EXPECT_EQ(cache->length(), 3);
  cache->reset();
  EXPECT_EQ(cache->extend(1, CachePart::kValues, 8)->data, address);
  EXPECT_EQ(memory.system_allocations(), allocations);
}

}  // namespace
}  // namespace assay::engine
