// A nameless temporary file, read behind the worker's writes.
#include "harness/worker_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool WorkerLog::has_more() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && static_cast<uint64_t>(status.st_size) > moved_bytes_;
}

Status WorkerLog::move_to(const std::function<Status(std::string_view)>& take) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got =
        ::pread(file_.get(), chunk.data(), chunk.size(), static_cast<off_t>(moved_bytes_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return environment_error("worker's output: {}", std::strerror(errno));
    if (got == 0) return {};
    ASSAY_CHECK(take({chunk.data(), static_cast<size_t>(got)}));
    moved_bytes_ += static_cast<uint64_t>(got);
  }
}

}  // namespace assay
