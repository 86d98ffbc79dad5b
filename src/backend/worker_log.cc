// A nameless temporary file, read behind the worker's writes, with a hole where there is too much.
#include "backend/worker_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace assay {

Result<WorkerLog> WorkerLog::create() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return environment_error(
        "temporary folder (TMPDIR): expected one for the workers' output, found: {}",
        error.message());
  }
  std::string name = (folder / "assay-worker-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0)
    return environment_error("{}: expected to make a temporary file, found: {}", folder.string(),
                             std::strerror(errno));
  ::unlink(name.c_str());
  return WorkerLog(Descriptor(fd));
}

std::filesystem::path WorkerLog::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get());
}

uint64_t WorkerLog::size_bytes() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool WorkerLog::has_more() const {
  return size_bytes() > moved_bytes_;
}

// If the file system makes no holes, the bytes stay until the file is closed.
void WorkerLog::forget(uint64_t begin, uint64_t end) {
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
}

void WorkerLog::bound() {
  const uint64_t kept_from = std::max(moved_bytes_ + kMostBytes / 2, tail_);
  const uint64_t size = size_bytes();
  if (size < kept_from + 2 * kMostBytes) return;
  tail_ = size - kMostBytes / 2;
  forget(kept_from, tail_);
}

Status WorkerLog::copy(uint64_t begin, uint64_t end,
                       const std::function<Status(std::string_view)>& take) {
  std::array<char, 65536> chunk;
  while (begin < end) {
    const ssize_t got = ::pread(file_.get(), chunk.data(), std::min(chunk.size(), end - begin),
                                static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return environment_error("worker's output: {}", std::strerror(errno));
    if (got == 0) return {};
    ASSAY_CHECK(take({chunk.data(), static_cast<size_t>(got)}));
    begin += static_cast<uint64_t>(got);
  }
  return {};
}

Result<uint64_t> WorkerLog::move_to(const std::function<Status(std::string_view)>& take,
                                    uint64_t most_bytes) {
  const uint64_t size = size_bytes();
  const uint64_t half = most_bytes / 2;
  uint64_t dropped = 0;
  if (tail_ == 0 && size <= moved_bytes_ + most_bytes) {
    ASSAY_CHECK(copy(moved_bytes_, size, take));
  } else {
    const uint64_t head_end = moved_bytes_ + half;
    const uint64_t tail = std::max(tail_, size - half);
    dropped = tail - head_end;
    ASSAY_CHECK(copy(moved_bytes_, head_end, take));
    ASSAY_CHECK(
        take(fmt::format("\n[assay: {} bytes of this output were dropped here]\n", dropped)));
    ASSAY_CHECK(copy(tail, size, take));
  }
  forget(0, size);
  moved_bytes_ = size;
  tail_ = 0;
  return dropped;
}

}  // namespace assay
