// A share of a stage belongs to the thread that raises its number; a stage is done when the count
// of
// shares says so.
#include "base/process/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <system_error>

#include "base/process/spin.h"

namespace assay {
namespace {

// A thread that runs begins its share within this time of the others; then its share is missing.
constexpr int64_t kPatience_ns = 5'000;
// Longer than the gap between two operators of a model, and shorter than the time that the spinning
// thread could cost the one that it waits for on a busy machine.
constexpr int64_t kSpin_ns = 50'000;

}  // namespace

ThreadPool::ThreadPool(size_t threads, std::function<void()> on_start)
    : shares_(std::max<size_t>(threads, 1)), on_start_(std::move(on_start)) {
  try {
    for (size_t i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i] { work(i); });
    }
  } catch (const std::system_error& error) {
    const size_t started = workers_.size() + 1;
    stop();  // no destructor runs after this, and a thread that nobody joins would end the program
    throw std::system_error(error.code(), fmt::format("threads: expected to start {}, found room "
                                                      "for {}",
                                                      threads, started));
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_ = true;
  ++end_;  // of a stage that nobody does
  wake();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Erased call, const void* task, size_t stages) {
  if (workers_.empty()) {
    for (size_t stage = 0; stage < stages; ++stage) call(task, stage, 0);
    return;
  }
  call_ = call;
  task_ = task;
  first_ = end_.load(std::memory_order_relaxed);
  const uint32_t end = first_ + static_cast<uint32_t>(stages);
  end_ = end;
  wake();
  walk(0, first_, end);
}

void ThreadPool::work(size_t thread) {
  if (on_start_) on_start_();
  uint32_t seen = 0;
  while (true) {
    const auto called = [&] { return end_.load() != seen; };
    if (!spin(called, kSpin_ns)) sleep_until(called);
    // The last stage of which somebody took this thread's share: all before it are done. Read
    // before end_, so that it isn't beyond that.
    const uint32_t stage = shares_[thread].next.load(std::memory_order_acquire) - 1;
    seen = end_.load(std::memory_order_acquire);
    if (stopping_) return;
    walk(thread, stage, seen);
  }
}

void ThreadPool::walk(size_t thread, uint32_t stage, uint32_t end) {
  bool missing = false;  // of the last stage, a share that its own thread didn't begin
  for (; stage != end; ++stage) {
    const auto done = [&] { return is_done(stage); };
    do_share(thread, stage);
    if (missing ? done() : spin(done, kPatience_ns)) continue;
    missing = false;
    for (size_t i = 0; i < shares_.size(); ++i) missing |= do_share(i, stage);
    if (!spin(done, kSpin_ns)) sleep_until(done);
  }
}

// False: another thread does it or has done it. Until a share is done that was taken here, its
// stage is the one at hand, and task and call are those of its run.
bool ThreadPool::do_share(size_t i, uint32_t stage) {
  uint32_t free = stage;
  if (!shares_[i].next.compare_exchange_strong(free, stage + 1)) return false;
  call_(task_, stage - first_, i);
  ++done_;
  wake();
  return true;
}

bool ThreadPool::is_done(uint32_t stage) const {
  const uint32_t shares = (stage + 1) * static_cast<uint32_t>(shares_.size());
  return static_cast<int32_t>(done_.load() - shares) >= 0;
}

// All of it is sequentially consistent: a thread that doesn't see the change it waits for says that
// it sleeps where wake() sees it, and a thread that wake() is to wake changes the number slept on.
template <typename Done>
void ThreadPool::sleep_until(const Done& done) {
  while (true) {
    const uint32_t wakes = wakes_;
    asleep_ = true;
    if (done()) return;
    wakes_.wait(wakes);
  }
}

// Called after a change that a sleeper may wait for. One system call for each sleep, however many
// stages pass before the sleeper runs.
void ThreadPool::wake() {
  if (!asleep_ || !asleep_.exchange(false)) return;
  ++wakes_;
  wakes_.notify_all();
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
