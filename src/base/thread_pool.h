// A persistent pool for data-parallel loops: the caller takes part, waiting workers spin briefly
// and then sleep, and one run() costs about a microsecond when they spin.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/shared_cpus.h"

namespace assay {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 starts none. `on_start` runs first on every started thread.
  explicit ThreadPool(size_t threads, std::function<void()> on_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const { return workers_.size() + 1; }

  // Calls task(i) for i in [0, size()), each i on a thread of its own, and returns when all are
  // done. The task must not throw and must not call run() of the same pool. One caller at a time.
  template <typename Task>
  void run(const Task& task) {
    run_erased([](const void* t, size_t i) { (*static_cast<const Task*>(t))(i); }, &task);
  }

  // Splits [0, count) into one contiguous range a thread, with boundaries at multiples of `grain`,
  // and calls body(begin, end) for the ranges that aren't empty.
  template <typename Body>
  void parallel_for(size_t count, size_t grain, const Body& body) {
    const size_t pieces = (count + grain - 1) / grain;
    if (pieces <= 1 || size() == 1) {
      if (count > 0) body(size_t{0}, count);
      return;
    }
    run([&](size_t i) {
      const size_t begin = pieces * i / size() * grain;
      const size_t end = std::min(count, pieces * (i + 1) / size() * grain);
      if (begin < end) body(begin, end);
    });
  }

 private:
  using Erased = void (*)(const void*, size_t);
  void run_erased(Erased call, const void* task);
  void work(size_t index);

  std::vector<std::thread> workers_;
  std::function<void()> on_start_;
  SharedCpus cpus_;
  Erased call_ = nullptr;
  const void* task_ = nullptr;
  alignas(64) std::atomic<uint64_t> generation_{0};  // raised to start a run
  alignas(64) std::atomic<size_t> running_{0};       // workers that haven't finished it
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

// The CPUs this process may run on, in their order; empty: the kernel doesn't say.
std::vector<int> allowed_cpus();
// How many, and so how many threads it may run at once; at least 1.
size_t available_cpus();

}  // namespace assay
