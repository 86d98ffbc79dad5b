// Memory of one kind: the host's, or a GPU's. Addresses are for code that runs there; only the
// host's may be followed here.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace assay::engine {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  // 64-byte aligned, its content undefined. An environment_error names the size asked for.
  virtual Result<std::byte*> allocate(size_t bytes) = 0;
  // Frees an address that allocate() of the same space gave, once.
  virtual void free(std::byte* data) = 0;
  // `rows` rows of `row_bytes`, from one pitch to another, in the order of the device's other work.
  struct Rows {
    std::byte* to = nullptr;
    size_t to_pitch = 0;  // bytes from a row to the next
    const std::byte* from = nullptr;
    size_t from_pitch = 0;
    size_t row_bytes = 0, rows = 0;
  };
  // Both sides lie in this space and don't overlap. An environment_error is the device's.
  virtual Status copy(const Rows& rows) = 0;
};

// Lives as long as the program; any thread may use it. Its copy() never fails.
MemorySpace& host_memory();

}  // namespace assay::engine
