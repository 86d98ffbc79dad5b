// Memory for activations and growing caches: freed blocks are kept and handed out again, as a
// framework's caching allocator does. Which block a request gets depends on the free ones alone,
// not on the order in which they came back: the same requests from the same state get the same
// addresses. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "base/result.h"
#include "engine/memory/memory_space.h"

namespace assay::engine {

class BufferPool;

// A block of memory on loan from a pool, 64-byte aligned, its content undefined; goes back when
// destroyed. The pool must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  float* f32() const { return reinterpret_cast<float*>(data_); }
  int32_t* i32() const { return reinterpret_cast<int32_t*>(data_); }

 private:
  friend class BufferPool;
  Buffer(BufferPool* pool, std::byte* data, size_t size) : pool_(pool), data_(data), size_(size) {}

  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class BufferPool {
 public:
  // The space must outlive the pool.
  explicit BufferPool(MemorySpace& space = host_memory()) : space_(&space) {}
  ~BufferPool();  // every buffer must be back: assert
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  MemorySpace& space() const { return *space_; }
  // A block of at least `bytes`; an environment_error if the space has no more.
  Result<Buffer> allocate(size_t bytes);
  // Forgets the most bytes that were on loan, down to the present ones: free blocks are kept up to
  // that many bytes (at least kKeptBytes). Frees those beyond it.
  void forget_most();

  uint64_t used_bytes() const { return used_bytes_; }      // on loan
  uint64_t cached_bytes() const { return cached_bytes_; }  // free, kept for the next request
  uint64_t system_allocations() const { return system_allocations_; }  // since the start

 private:
  friend class Buffer;
  void give_back(std::byte* data, size_t size);
  void lend(size_t size);
  void trim();

  MemorySpace* space_;
  std::set<std::pair<size_t, std::byte*>> free_;  // by size, then by address
  uint64_t used_bytes_ = 0;
  uint64_t most_used_bytes_ = 0;  // since forget_most()
  uint64_t cached_bytes_ = 0;
  uint64_t system_allocations_ = 0;
};

}  // namespace assay::engine
