// Work beside the loop: what takes long, and needs nothing that the loop's thread changes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace assay::server {

// A thread that does one piece of work after the other. The destructor waits for the piece under
// way and leaves the others undone.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  void post(std::function<void()> work);

 private:
  void work();

  std::mutex mutex_ = {};
  std::condition_variable came_ = {};
  std::deque<std::function<void()>> waiting_ = {};
  bool stops_ = false;
  std::thread thread_;  // the last: it uses all others
};

}  // namespace assay::server
