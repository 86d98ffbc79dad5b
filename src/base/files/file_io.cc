// Whole reads and writes by descriptor.
#include "base/files/file_io.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace assay {
namespace {

namespace fs = std::filesystem;

// kEnvironment if the error is the machine's, kBadInput if it is the path's.
ErrorKind kind_of(int error) {
  const bool machine = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO ||
                       error == EMFILE || error == ENFILE || error == ENOMEM;
  return machine ? ErrorKind::kEnvironment : ErrorKind::kBadInput;
}

std::unexpected<Error> too_large(const fs::path& path, uint64_t max_bytes, uint64_t found) {
  return bad_input("{}: expected at most {} bytes, found {}", path.string(), max_bytes, found);
}

}  // namespace

std::unexpected<Error> unreadable(const fs::path& path, int error) {
  return std::unexpected(Error{
      kind_of(error),
      fmt::format("{}: expected a readable file, found: {}", path.string(), std::strerror(error))});
}

std::unexpected<Error> unwritable(const fs::path& path, int error) {
  return std::unexpected(Error{kind_of(error), fmt::format("{}: expected to write there, found: {}",
                                                           path.string(), std::strerror(error))});
}

std::string_view file_kind(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISREG(mode)) return "a regular file";
  return "a device";
}

Status require_regular(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unreadable(path);
  if (S_ISREG(info.st_mode)) return {};
  return bad_input("{}: expected a regular file, found {}", path.string(), file_kind(info.st_mode));
}

Result<std::string> read_whole(int fd, uint64_t max_bytes, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unreadable(path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > max_bytes) return too_large(path, max_bytes, size);
  std::string content;
  // The kernel's own files say 0, and a file may grow meanwhile: the size is only where to begin.
  content.resize(size + 1);
  uint64_t got = 0;
  while (true) {
    const ssize_t n =
        ::pread(fd, content.data() + got, content.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path);
    if (n == 0) break;
    got += static_cast<uint64_t>(n);
    if (got > max_bytes) return too_large(path, max_bytes, got);
    if (got == content.size()) content.resize(std::max<uint64_t>(2 * got, 1 << 16));
  }
  content.resize(got);
  return content;
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

}  // namespace assay
