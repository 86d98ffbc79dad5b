// Files by POSIX calls, so that a full disk or a missing permission is seen where it happens.
#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> unreadable(const fs::path& path) {
  return bad_input("{}: expected a readable file, found: {}", path.string(), std::strerror(errno));
}

// Whether the machine, not the path, is at fault.
bool is_environment(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO || error == EMFILE ||
         error == ENFILE || error == ENOMEM;
}

std::unexpected<Error> unwritable(const fs::path& path, int error = errno) {
  const ErrorKind kind = is_environment(error) ? ErrorKind::kEnvironment : ErrorKind::kBadInput;
  return std::unexpected(Error{kind, fmt::format("{}: expected to write there, found: {}",
                                                 path.string(), std::strerror(error))});
}

// Makes a new name in a folder survive a power cut. Not every file system can: no error then.
void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.ok()) ::fsync(opened.get());
}

Status write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unwritable(path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

class DiskAppendFile final : public AppendFile {
 public:
  DiskAppendFile(fs::path path, int fd) : path_(std::move(path)), file_(fd) {}

  Status append(std::string_view bytes) override {
    const off_t before = ::lseek(file_.get(), 0, SEEK_END);
    const Status written = write_all(file_.get(), bytes, path_);
    // A half-written row must not stay: on a full disk truncation still works. Where it doesn't,
    // the error to report is still the write's.
    if (!written && before >= 0 && ::ftruncate(file_.get(), before) != 0) return written;
    return written;
  }

  Status sync() override {
    if (::fdatasync(file_.get()) != 0) return unwritable(path_);
    return {};
  }

 private:
  fs::path path_;
  Descriptor file_;
};

class Disk final : public FileSystem {
 public:
  Status make_folder(const fs::path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return unwritable(path, error.value());
    return {};
  }

  Status write_atomic(const fs::path& path, std::string_view content) override {
    const fs::path temporary = path.string() + fmt::format(".tmp{}", ::getpid());
    Status written = write_new(temporary, content, path);
    if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = unwritable(path);
    if (!written) {
      ::unlink(temporary.c_str());
      return written;
    }
    sync_folder_of(path);
    return {};
  }

  Result<std::unique_ptr<AppendFile>> open_append(const fs::path& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return unwritable(path);
    sync_folder_of(path);
    return std::make_unique<DiskAppendFile>(path, fd);
  }

  Status truncate(const fs::path& path, uint64_t size_bytes) override {
    if (::truncate(path.c_str(), static_cast<off_t>(size_bytes)) != 0) return unwritable(path);
    return {};
  }

  Status remove(const fs::path& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return unwritable(path);
    return {};
  }

 private:
  // Errors name `target`, the file that the caller knows.
  static Status write_new(const fs::path& path, std::string_view content, const fs::path& target) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.ok()) return unwritable(target);
    ASSAY_CHECK(write_all(file.get(), content, target));
    if (::fdatasync(file.get()) != 0) return unwritable(target);
    return {};
  }
};

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return unreadable(path);
  std::string content;
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path);
    if (n == 0) return content;
    content.append(block, static_cast<size_t>(n));
  }
}

Result<MappedFile> MappedFile::open(const fs::path& path) {
  // Not blocking: a pipe of that name must be refused, not waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.ok() || ::fstat(file.get(), &info) != 0) return unreadable(path);
  if (!S_ISREG(info.st_mode)) {
    return bad_input("{}: expected a regular file, found another kind", path.string());
  }
  MappedFile mapped;
  if (info.st_size == 0) return mapped;
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return unreadable(path);
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

FileSystem& disk() {
  static Disk the_disk;
  return the_disk;
}

Status write_file(const fs::path& path, std::string_view content) {
  return disk().write_atomic(path, content);
}

}  // namespace assay
