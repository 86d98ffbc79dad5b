// Scores, softmax, weighted sum of values: in blocks of positions that stay in the first-level
// cache while the queries take turns on them.
#include "engine/ops/cpu/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/attention.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kPositionBlock = 32;  // 8 KiB of keys at head_dim 64

float largest_score(const float* scores, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float result = scores[0];
  int64_t i = 0;
  if (count >= lanes) {
    auto best = hn::LoadU(d, scores);
    for (i = lanes; i + lanes <= count; i += lanes) best = hn::Max(best, hn::LoadU(d, scores + i));
    result = hn::GetLane(hn::MaxOfLanes(d, best));
  }
  for (; i < count; ++i) result = std::max(result, scores[i]);
  return result;
}

void softmax(float* scores, int64_t count, float scale) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float largest = largest_score(scores, count);
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto centred = hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, largest));
    const auto e = hn::Exp(d, hn::Mul(centred, hn::Set(d, scale)));
    hn::StoreU(e, d, scores + i);
    sums = hn::Add(sums, e);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) {
    scores[i] = hn::GetLane(hn::Exp(one, hn::Set(one, (scores[i] - largest) * scale)));
    total += scores[i];
  }
  const float inverse = 1.0f / total;
  for (i = 0; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, scores + i), hn::Set(d, inverse)), d, scores + i);
  }
  for (; i < count; ++i) scores[i] *= inverse;
}

HWY_INLINE float dot(const float* a, const float* b, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), sum1);
  }
  for (; i + lanes <= count; i += lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// out[0, vectors of columns) += weights . values, the rows of values `pitch` apart.
template <int64_t vectors, class D>
HWY_INLINE void add_weighted(D d, const float* weights, const float* values, int64_t rows,
                             int64_t pitch, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[vectors];
  for (int64_t v = 0; v < vectors; ++v) sums[v] = hn::LoadU(d, out + v * lanes);
  for (int64_t r = 0; r < rows; ++r) {
    const auto weight = hn::Set(d, weights[r]);
    for (int64_t v = 0; v < vectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, values + r * pitch + v * lanes), sums[v]);
    }
  }
  for (int64_t v = 0; v < vectors; ++v) hn::StoreU(sums[v], d, out + v * lanes);
}

void add_weighted_rows(const float* weights, const float* values, int64_t rows, int64_t head_dim,
                       float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= head_dim; i += 4 * lanes) {
    add_weighted<4>(d, weights, values + i, rows, head_dim, out + i);
  }
  for (; i + lanes <= head_dim; i += lanes) {
    add_weighted<1>(d, weights, values + i, rows, head_dim, out + i);
  }
  for (; i < head_dim; ++i) add_weighted<1>(one, weights, values + i, rows, head_dim, out + i);
}

// Calls body(query index, first position, end position) for each query's part of each block.
template <class Body>
HWY_INLINE void for_each_block(std::span<const cpu::Query> queries, const Body& body) {
  int64_t begin = queries[0].first;
  int64_t end = queries[0].last + 1;
  for (const cpu::Query& query : queries) {
    begin = std::min(begin, query.first);
    end = std::max(end, query.last + 1);
  }
  for (int64_t block = begin; block < end; block += kPositionBlock) {
    for (size_t i = 0; i < queries.size(); ++i) {
      const int64_t from = std::max(block, queries[i].first);
      const int64_t to = std::min(block + kPositionBlock, queries[i].last + 1);
      if (from < to) body(i, from, to);
    }
  }
}

void attend(std::span<const cpu::Query> queries, const float* keys, const float* values,
            int64_t head_dim, float* scores) {
  int64_t pitch = 0;
  for (const cpu::Query& query : queries) pitch = std::max(pitch, query.last - query.first + 1);
  for_each_block(queries, [&](size_t i, int64_t from, int64_t to) HWY_ATTR {
    const cpu::Query& query = queries[i];
    float* row = scores + static_cast<int64_t>(i) * pitch - query.first;
    for (int64_t p = from; p < to; ++p) row[p] = dot(query.q, keys + p * head_dim, head_dim);
  });
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  for (size_t i = 0; i < queries.size(); ++i) {
    softmax(scores + static_cast<int64_t>(i) * pitch, queries[i].last - queries[i].first + 1,
            scale);
    std::fill_n(queries[i].out, head_dim, 0.0f);
  }
  for_each_block(queries, [&](size_t i, int64_t from, int64_t to) HWY_ATTR {
    const cpu::Query& query = queries[i];
    const float* row = scores + static_cast<int64_t>(i) * pitch - query.first;
    add_weighted_rows(row + from, values + from * head_dim, to - from, head_dim, query.out);
  });
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(softmax);
HWY_EXPORT(attend);

namespace cpu {

void softmax(float* scores, int64_t count, float scale) {
  HWY_DYNAMIC_DISPATCH(softmax)(scores, count, scale);
}

void attend(std::span<const Query> queries, const float* keys, const float* values,
            int64_t head_dim, float* scores) {
  HWY_DYNAMIC_DISPATCH(attend)(queries, keys, values, head_dim, scores);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
