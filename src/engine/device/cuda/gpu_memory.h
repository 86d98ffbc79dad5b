// A GPU's memory as the engine's pools and caches see it.
#pragma once

#include <span>

#include "engine/device/cuda/driver.h"
#include "engine/memory/memory_space.h"

namespace assay::engine::cuda {

inline Address address_of(const std::byte* data) {
  return static_cast<Address>(reinterpret_cast<uintptr_t>(data));
}
inline std::byte* pointer_to(Address address) {
  return reinterpret_cast<std::byte*>(  // NOLINT(performance-no-int-to-ptr)
      static_cast<uintptr_t>(address));
}

// Errors are the driver's (Driver::allocate, copy_rows); free() ignores the driver's answer.
class GpuMemory final : public MemorySpace {
 public:
  explicit GpuMemory(Driver& driver) : driver_(driver) {}  // which must outlive it

  Result<std::byte*> allocate(size_t bytes) override {
    ASSAY_TRY(const Address address, driver_.allocate(bytes));
    return pointer_to(address);
  }
  void free(std::byte* data) override { driver_.free(address_of(data)); }
  ::assay::Status copy(const Rows& rows) override {
    return driver_.copy_rows(address_of(rows.to), rows.to_pitch, address_of(rows.from),
                             rows.from_pitch, rows.row_bytes, rows.rows);
  }

 private:
  Driver& driver_;
};

// A block of a GPU's memory, given back when it is destroyed. The driver must outlive it.
class GpuBlock {
 public:
  GpuBlock() = default;
  static Result<GpuBlock> allocate(Driver& driver, size_t bytes) {
    ASSAY_TRY(const Address address, driver.allocate(bytes));
    return GpuBlock(driver, address, bytes);
  }
  GpuBlock(GpuBlock&& other) noexcept
      : driver_(other.driver_),
        address_(std::exchange(other.address_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  GpuBlock& operator=(GpuBlock&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GpuBlock() {
    if (address_ != 0) driver_->free(address_);
  }

  Address address() const { return address_; }
  size_t size_bytes() const { return bytes_; }

 private:
  GpuBlock(Driver& driver, Address address, size_t bytes)
      : driver_(&driver), address_(address), bytes_(bytes) {}
  Driver* driver_ = nullptr;
  Address address_ = 0;
  size_t bytes_ = 0;
};

// Memory of the host that the GPU reads by itself, likewise: a copy from it returns before it is
// done.
class HostBlock {
 public:
  HostBlock() = default;
  static Result<HostBlock> allocate(Driver& driver, size_t bytes) {
    ASSAY_TRY(void* const data, driver.allocate_on_host(bytes));
    return HostBlock(driver, static_cast<std::byte*>(data), bytes);
  }
  HostBlock(HostBlock&& other) noexcept
      : driver_(other.driver_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  HostBlock& operator=(HostBlock&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostBlock() {
    if (data_ != nullptr) driver_->free_on_host(data_);
  }

  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  HostBlock(Driver& driver, std::byte* data, size_t bytes)
      : driver_(&driver), data_(data), bytes_(bytes) {}
  Driver* driver_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace assay::engine::cuda
