// The pool: a generation counter starts a run, a countdown ends it.
#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <system_error>

namespace assay {
namespace {

// How long a worker waits for work before it sleeps: longer than the gap between two operators of a
// model, shorter than what would be noticed on an idle machine.
constexpr int kRounds = 8'000;

// Wakes the workers to see that they are to stop, and waits until they have.
void join_all(std::vector<std::thread>& workers, std::atomic<bool>& stopping, std::mutex& mutex,
              std::atomic<uint64_t>& generation, std::condition_variable& wake) {
  stopping = true;
  {
    const std::lock_guard lock(mutex);
    generation.fetch_add(1);
  }
  wake.notify_all();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

ThreadPool::ThreadPool(size_t threads, std::function<void()> on_start)
    : on_start_(std::move(on_start)), cpus_(std::max<size_t>(threads, 1)) {
  try {
    for (size_t i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i] { work(i); });
    }
  } catch (const std::system_error& error) {
    // No destructor runs after this, and a thread that nobody joins would end the program.
    join_all(workers_, stopping_, mutex_, generation_, wake_);
    throw std::system_error(error.code(), fmt::format("threads: expected to start {}, found room "
                                                      "for {}",
                                                      threads, size()));
  }
}

ThreadPool::~ThreadPool() {
  join_all(workers_, stopping_, mutex_, generation_, wake_);
}

void ThreadPool::run_erased(Erased call, const void* task) {
  if (workers_.empty()) return call(task, 0);
  call_ = call;
  task_ = task;
  running_.store(workers_.size(), std::memory_order_relaxed);
  generation_.fetch_add(1);  // sequentially consistent: ordered against a worker's going to sleep
  if (sleeping_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  call(task, 0);
  spin_until(cpus_, 0, [&] { return running_.load(std::memory_order_acquire) == 0; });
}

void ThreadPool::work(size_t index) {
  if (on_start_) on_start_();
  uint64_t seen = 0;
  while (true) {
    const bool called = spin_until(
        cpus_, index, [&] { return generation_.load(std::memory_order_acquire) != seen; }, kRounds);
    if (!called) {
      std::unique_lock lock(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      sleeping_.fetch_sub(1);
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    call_(task_, index);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

size_t available_cpus() {
  return std::max<size_t>(allowed_cpus().size(), 1);
}

}  // namespace assay
