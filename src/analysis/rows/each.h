// Independent work on many items, spread over a pool that may be null.
#pragma once

#include "base/thread_pool.h"

namespace assay {

// Calls body(i) for each i below `count`, each once, on any thread.
template <typename Body>
void for_each_index(size_t count, ThreadPool* pool, const Body& body) {
  const auto range = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(i);
  };
  if (pool != nullptr) {
    pool->parallel_for(count, 1, range);
  } else {
    range(0, count);
  }
}

}  // namespace assay
