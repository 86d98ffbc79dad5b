// Small pages: a row touches one or two of them, where it would fill a huge one.
#include "engine/device/cpu/decoded_table.h"

#include <sys/mman.h>

#include <cassert>
#include <utility>

#include "base/text/text.h"

namespace assay::engine {

size_t DecodedTable::size_bytes() const {
  return static_cast<size_t>(blocks_.shape.elements()) * sizeof(float);
}

Result<DecodedTable> DecodedTable::make(const TensorView& blocks) {
  const size_t bytes = static_cast<size_t>(blocks.shape.elements()) * sizeof(float);
  void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    return environment_error("table of rows: expected room for {}, found none",
                             format_bytes(static_cast<double>(bytes)));
  }
  ::madvise(map, bytes, MADV_NOHUGEPAGE);
  return DecodedTable(blocks, static_cast<float*>(map));
}

DecodedTable::DecodedTable(DecodedTable&& other) noexcept
    : blocks_(other.blocks_),
      data_(std::exchange(other.data_, nullptr)),
      has_(std::move(other.has_)) {}

DecodedTable::~DecodedTable() {
  if (data_ != nullptr) ::munmap(data_, size_bytes());
}

void DecodedTable::want(std::span<const int32_t> rows) {
  for (const int32_t row : rows) {
    assert(row >= 0 && row < blocks_.shape[0]);
    const auto at = static_cast<size_t>(row);
    if (has_[at]) continue;
    decode_row(blocks_, row, data_ + row * blocks_.row_values());
    has_[at] = true;
  }
}

}  // namespace assay::engine
