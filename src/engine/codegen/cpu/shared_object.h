// A shared object of kernels in this process.
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"
#include "engine/codegen/cpu/kernel_functions.h"

namespace assay::engine {

// Owns the loader's handle: functions are void once it is gone.
class SharedObject {
 public:
  // environment_error for a file that is no shared object, isn't whole (the loader would crash on
  // it), or lacks assay_run.
  static Result<SharedObject> open(const std::filesystem::path& path);
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), functions_(other.functions_) {}
  SharedObject& operator=(SharedObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(functions_, other.functions_);
    return *this;
  }
  ~SharedObject();

  const KernelFunctions& functions() const { return functions_; }

 private:
  void* handle_ = nullptr;
  KernelFunctions functions_;
};

// Checks that bytes are a whole shared object: an ELF file of this machine's kind whose segments
// and section table lie within them.
Status check_elf(std::span<const std::byte> bytes);

}  // namespace assay::engine
