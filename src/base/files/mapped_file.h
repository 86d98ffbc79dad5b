// Files mapped read-only, and the program's end if one is cut short while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace assay {

// Tells a file from another one that came to stand at its path, and from itself before somebody
// wrote to it: a change sets the time of change, which nobody can choose.
struct FileStamp {
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // Unix time

  std::string text() const;  // one line's words
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
Result<FileStamp> file_stamp(const std::filesystem::path& path);

// A file mapped read-only; the bytes stay valid as long as the object. An empty file maps to no
// bytes. If somebody truncates the file meanwhile, reading past its new end raises SIGBUS, which
// report_truncated_mappings() turns into one line and an exit status.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  // The same of an open file; `path` names it.
  static Result<MappedFile> of(int fd, const std::filesystem::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        stamp_(other.stamp_) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(stamp_, other.stamp_);
    return *this;
  }
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const FileStamp& stamp() const { return stamp_; }  // when it was opened
  // Takes its bytes out of the process's resident memory. Reading one again is slower, no more.
  void drop_pages() const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  FileStamp stamp_;
};

// Asks for the pages of a mapping's bytes now. Only a wish: without it their first reader waits.
void page_in(std::span<const std::byte> bytes);

// From here on a SIGBUS inside a mapped file ends the process with exit status 3 and one line on
// stderr, which names the file. Any other SIGBUS is left as it was. For a program's start.
void report_truncated_mappings();

}  // namespace assay
