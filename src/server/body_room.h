// Memory for the bodies of all requests together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace assay::server {

// Used from any thread.
class BodyRoom {
 public:
  explicit BodyRoom(uint64_t most_bytes) : most_(most_bytes) {}

  // False where there is less left; nothing is taken then.
  bool take(uint64_t bytes) {
    uint64_t taken = taken_;
    while (bytes <= most_ - taken) {
      if (taken_.compare_exchange_weak(taken, taken + bytes)) return true;
    }
    return false;
  }
  void give_back(uint64_t bytes) { taken_ -= bytes; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> taken_ = 0;  // never more than most_
};

// One body's part of it, which it has until its end.
class BodyShare {
 public:
  explicit BodyShare(std::shared_ptr<BodyRoom> room) : room_(std::move(room)) {}
  ~BodyShare() { room_->give_back(bytes_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // True if the body may have so many bytes.
  bool grow_to(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!room_->take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<BodyRoom> room_;
  uint64_t bytes_ = 0;
};

}  // namespace assay::server
