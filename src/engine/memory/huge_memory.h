// Anonymous memory in huge pages where the system grants them, for streams.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace assay::engine {

// Owned bytes, zeroed, aligned to a huge page. A page takes memory once it is written.
class HugeMemory {
 public:
  static constexpr size_t kPageBytes = size_t{2} << 20;

  // An environment_error if the system has no more.
  static Result<HugeMemory> allocate(size_t bytes);
  HugeMemory() = default;
  HugeMemory(HugeMemory&& other) noexcept;
  HugeMemory& operator=(HugeMemory&& other) noexcept;
  ~HugeMemory();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_; }

 private:
  void* map_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace assay::engine
