// Ownership of a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace assay {

// Owns a descriptor and closes it when destroyed, assigned to or reset(). An error of close() is
// dropped: a caller who has to know of it calls release() and closes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}  // negative: none
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    other.reset();
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }  // stays this object's; negative: none
  bool ok() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }  // the caller's to close
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace assay
