// The host's memory.
#include "engine/memory/memory_space.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace assay::engine {
namespace {

class HostMemory final : public MemorySpace {
 public:
  Result<std::byte*> allocate(size_t bytes) override {
    constexpr size_t kHugePage = size_t{2} << 20, kAlignment = 64;
    void* memory = nullptr;
    if (posix_memalign(&memory, bytes >= kHugePage ? kHugePage : kAlignment, bytes) != 0) {
      return environment_error("memory: can't allocate {} bytes", bytes);
    }
    if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: failing is harmless
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* data) override { std::free(data); }
  Status copy(const Rows& rows) override {
    for (size_t row = 0; row < rows.rows; ++row) {
      std::memcpy(rows.to + row * rows.to_pitch, rows.from + row * rows.from_pitch, rows.row_bytes);
    }
    return {};
  }
};

}  // namespace

MemorySpace& host_memory() {
  static HostMemory memory;  // without state
  return memory;
}

}  // namespace assay::engine
