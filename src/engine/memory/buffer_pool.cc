// Memory by size classes: a request is rounded up to one, so that slowly growing sizes meet the
// same blocks.
#include "engine/memory/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace assay::engine {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 512;
// Free memory is kept up to this, or up to the most bytes on loan if that is more.
constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

// Eight classes an octave: at most an eighth is wasted.
size_t size_class(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const size_t step = std::max(kAlignment, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(other.pool_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) pool_->give_back(data_, size_);
}

BufferPool::~BufferPool() {
  assert(used_bytes_ == 0);
  for (const auto& [size, data] : free_) space_->free(data);
}

Result<Buffer> BufferPool::allocate(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) return environment_error("memory: can't allocate {} bytes", bytes);
  const size_t size = size_class(bytes);
  const auto found = free_.lower_bound({size, nullptr});
  if (found != free_.end() && found->first <= 2 * size) {
    const auto [found_size, data] = *found;
    free_.erase(found);
    cached_bytes_ -= found_size;
    lend(found_size);
    return Buffer(this, data, found_size);
  }
  ASSAY_TRY(std::byte* const memory, space_->allocate(size));
  ++system_allocations_;
  lend(size);
  return Buffer(this, memory, size);
}

void BufferPool::lend(size_t size) {
  used_bytes_ += size;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
}

void BufferPool::forget_most() {
  most_used_bytes_ = used_bytes_;
  trim();
}

void BufferPool::give_back(std::byte* data, size_t size) {
  used_bytes_ -= size;
  cached_bytes_ += size;
  free_.emplace(size, data);
  trim();
}

void BufferPool::trim() {
  while (cached_bytes_ > std::max(kKeptBytes, most_used_bytes_)) {
    const auto smallest = free_.begin();  // outgrown sizes go first
    cached_bytes_ -= smallest->first;
    space_->free(smallest->second);
    free_.erase(smallest);
  }
}

}  // namespace assay::engine
