// Where the threads of one step wait for each other between two kernels: microseconds apart, so
// they spin, and yield only once they have waited long or stand in each other's way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/shared_cpus.h"

namespace assay::engine {

class SpinBarrier {
 public:
  explicit SpinBarrier(size_t threads) : threads_(threads), cpus_(threads) {}

  // Returns once all `threads` have called it; each calls it once a round, under its own number.
  // What any thread wrote before its wait() is seen by all after theirs. `thread`: its number, from
  // 0.
  void wait(size_t thread) {
    if (threads_ == 1) return;
    const uint64_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    spin_until(cpus_, thread, [&] { return round_.load(std::memory_order_acquire) != round; });
  }

 private:
  const size_t threads_;
  SharedCpus cpus_;
  alignas(64) std::atomic<size_t> arrived_{0};
  alignas(64) std::atomic<uint64_t> round_{0};
};

}  // namespace assay::engine
