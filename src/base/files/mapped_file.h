// Files mapped read-only, and the program's end if one is cut short while it is mapped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "base/result.h"

namespace assay {

// A file mapped read-only; the bytes stay valid as long as the object. An empty file maps to no
// bytes. If somebody truncates the file meanwhile, reading past its new end raises SIGBUS, which
// report_truncated_mappings() turns into one line and an exit status.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Takes its bytes out of the process's resident memory. Reading one again is slower, no more.
  void drop_pages() const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// From here on a SIGBUS inside a mapped file ends the process with exit status 3 and one line on
// stderr, which names the file. Any other SIGBUS is left as it was. For a program's start.
void report_truncated_mappings();

}  // namespace assay
