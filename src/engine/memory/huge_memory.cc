// A mapping with room to align it, and the wish for huge pages.
#include "engine/memory/huge_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace assay::engine {

Result<HugeMemory> HugeMemory::allocate(size_t bytes) {
  HugeMemory memory;
  const size_t mapped = bytes + kPageBytes;
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    return environment_error("memory: expected {} bytes, found: {}", mapped, std::strerror(errno));
  }
  madvise(map, mapped, MADV_HUGEPAGE);  // a wish: refused, the pages stay small
  memory.map_ = map;
  memory.mapped_ = mapped;
  const auto address = reinterpret_cast<uintptr_t>(map);
  memory.data_ = static_cast<std::byte*>(map) +
                 ((address + kPageBytes - 1) / kPageBytes * kPageBytes - address);
  memory.size_ = bytes;
  return memory;
}

HugeMemory::HugeMemory(HugeMemory&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

HugeMemory& HugeMemory::operator=(HugeMemory&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

HugeMemory::~HugeMemory() {
  if (map_ != nullptr) munmap(map_, mapped_);
}

}  // namespace assay::engine
