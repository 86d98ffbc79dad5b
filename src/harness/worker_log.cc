// A temporary file, read behind the worker's writes.
#include "harness/worker_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace assay {

Result<WorkerLog> WorkerLog::create() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return environment_error("temporary folder: {}", error.message());
  std::string name = (folder / "assay-worker-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return environment_error("{}: {}", folder.string(), std::strerror(errno));
  return WorkerLog(Descriptor(fd), name);
}

WorkerLog::WorkerLog(WorkerLog&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::exchange(other.path_, {})),
      moved_bytes_(other.moved_bytes_) {}

WorkerLog& WorkerLog::operator=(WorkerLog&& other) noexcept {
  forget_name();
  file_ = std::move(other.file_);
  path_ = std::exchange(other.path_, {});
  moved_bytes_ = other.moved_bytes_;
  return *this;
}

WorkerLog::~WorkerLog() {
  forget_name();
}

void WorkerLog::forget_name() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

bool WorkerLog::has_more() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && static_cast<uint64_t>(status.st_size) > moved_bytes_;
}

Status WorkerLog::move_to(AppendFile& out) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got =
        ::pread(file_.get(), chunk.data(), chunk.size(), static_cast<off_t>(moved_bytes_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return environment_error("worker's output: {}", std::strerror(errno));
    if (got == 0) return {};
    ASSAY_CHECK(out.append({chunk.data(), static_cast<size_t>(got)}));
    moved_bytes_ += static_cast<uint64_t>(got);
  }
}

}  // namespace assay
