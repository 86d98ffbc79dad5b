#include "server/aside.h"

#include <utility>

namespace assay::server {

Aside::Aside() : thread_([this] { work(); }) {}

Aside::~Aside() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  came_.notify_one();
  thread_.join();
}

void Aside::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  came_.notify_one();
}

void Aside::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    came_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
  }
}

}  // namespace assay::server
