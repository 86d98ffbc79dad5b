// Independent work on many items, spread over a pool that may be null.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/process/thread_pool.h"

namespace assay {

// Calls body(i) for each i below `count`, each once, on any thread. A thread takes the next item
// when it is done with one: a busy core holds up one item, not a share of all.
template <typename Body>
void for_each_index(size_t count, ThreadPool* pool, const Body& body) {
  std::atomic<size_t> next = 0;
  const auto work = [&](size_t /*thread*/) {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  if (pool != nullptr && count > 1) {
    pool->run(work);
  } else {
    work(0);
  }
}

}  // namespace assay
