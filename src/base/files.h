// Files: read, map, write atomically, append durably. Errors name the path: bad_input where another
// path would do (no permission, not a folder, read-only), environment_error where none would (no
// space, a failing device).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace assay {

Result<std::string> read_file(const std::filesystem::path& path);

// A file mapped read-only; the bytes stay valid as long as the object. An empty file maps to no
// bytes. The file must not be truncated by others meanwhile: a mapping past its end raises SIGBUS.
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

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file open for appending. append() returns once the bytes are in the kernel; sync() once they
// are on the device. A failed append leaves the file at its former length where the system allows
// it.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  virtual Status append(std::string_view bytes) = 0;
  virtual Status sync() = 0;
};

// What the bundle's writer needs of a file system; tests put a full disk behind it.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Status make_folder(const std::filesystem::path& path) = 0;  // with its parents
  // Writes beside the target, then renames: readers see the old content or the new one.
  virtual Status write_atomic(const std::filesystem::path& path, std::string_view content) = 0;
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::filesystem::path& path) = 0;
  virtual Status truncate(const std::filesystem::path& path, uint64_t size_bytes) = 0;
  virtual Status remove(const std::filesystem::path& path) = 0;  // a file; a missing one is fine
};

// The machine's files; lives as long as the program.
FileSystem& disk();

// Short for disk().write_atomic.
Status write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace assay
