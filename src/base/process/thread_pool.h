// A persistent pool for data-parallel loops and for walks of many short stages, on a machine whose
// CPUs others use too. The caller takes part. A wait spins briefly and then sleeps, and nobody
// waits for a thread that hasn't begun its share: any other thread of the pool does it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace assay {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 starts none. `on_start` runs first on every started thread.
  explicit ThreadPool(size_t threads, std::function<void()> on_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const { return workers_.size() + 1; }

  // Calls task(i) for i in [0, size()), each once, and returns when all are done. Each i has a
  // thread of its own, unless that thread comes so late that another one does its share: calls of
  // one run may not wait for each other. The task must not throw (the program ends) and must not
  // call run() of the same pool. One caller at a time.
  template <typename Task>
  void run(const Task& task) {
    run_stages(1, [&task](size_t, size_t i) { task(i); });
  }

  // Like run(), with task(stage, i) for one stage after the other: no call of a stage begins before
  // all of the stage before have returned, and it sees their writes.
  template <typename Task>
  void run_stages(size_t stages, const Task& task) {
    run_erased([](const void* t, size_t stage,
                  size_t i) noexcept { (*static_cast<const Task*>(t))(stage, i); },
               &task, stages);
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
  using Erased = void (*)(const void*, size_t stage, size_t i) noexcept;
  // Stages are numbered from the pool's start on, and the numbers wrap.
  struct alignas(64) Share {
    std::atomic<uint32_t> next{0};  // the first stage whose share nobody has taken
  };
  void run_erased(Erased call, const void* task, size_t stages);
  void work(size_t thread);
  void walk(size_t thread, uint32_t stage, uint32_t end);
  bool do_share(size_t i, uint32_t stage);
  bool is_done(uint32_t stage) const;
  template <typename Done>
  void sleep_until(const Done& done);
  void wake();
  void stop();

  std::vector<Share> shares_;
  std::vector<std::thread> workers_;
  std::function<void()> on_start_;
  Erased call_ = nullptr;  // these three: of the stages up to end_
  const void* task_ = nullptr;
  uint32_t first_ = 0;
  alignas(64) std::atomic<uint32_t> end_{0};     // the stages before it may be done
  alignas(64) std::atomic<uint32_t> done_{0};    // shares, of all stages
  alignas(64) std::atomic<bool> asleep_{false};  // somebody may wait for wakes_ to change
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> stopping_{false};
};

// The CPUs this process may run on, in their order; empty: the kernel doesn't say.
std::vector<int> allowed_cpus();
// The number of these CPUs, and so of threads that may run at once; at least 1.
size_t available_cpus();

}  // namespace assay
