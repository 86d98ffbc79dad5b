// Where the threads of one step wait for each other between two kernels: microseconds apart, so
// they spin, and yield only once they have waited long.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::engine {

class SpinBarrier {
 public:
  explicit SpinBarrier(size_t threads) : threads_(threads) {}

  // What any thread wrote before its wait() is seen by all after theirs.
  void wait() {
    if (threads_ == 1) return;
    const uint64_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < kSpins) {
        pause();
      } else {
        sched_yield();  // more threads than cores, or a core that is taken: let the others run
      }
    }
  }

 private:
  static constexpr int kSpins = 20'000;

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const size_t threads_;
  alignas(64) std::atomic<size_t> arrived_{0};
  alignas(64) std::atomic<uint64_t> round_{0};
};

}  // namespace assay::engine
