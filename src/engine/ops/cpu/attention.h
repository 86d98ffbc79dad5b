// Softmax attention of one head: SIMD on one thread.
#pragma once

#include <cstdint>
#include <span>

namespace assay::engine::cpu {

// In place: scores[i] = exp(scale * scores[i]) / sum of those, for i in [0, count). scale > 0,
// count >= 1.
void softmax(float* scores, int64_t count, float scale);

// A query that sees the cache positions [first, last] of its head.
struct Query {
  const float* q = nullptr;  // [head_dim]
  float* out = nullptr;      // [head_dim]
  int64_t first = 0;
  int64_t last = 0;
};

// Few queries against one kv head: keys and values are read once for all of them.
void attend(std::span<const Query> queries, const float* keys,  // [positions, head_dim]
            const float* values,                                // [positions, head_dim]
            int64_t head_dim,
            float* scores);  // scratch: [queries, longest range], a range being last - first + 1

}  // namespace assay::engine::cpu
