// mkdtemp and remove_all; flock tells who lives.
#include "base/files/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRandomLetters = "XXXXXX";  // as mkdtemp fills in

Descriptor open_folder(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_at(const Descriptor& folder, const fs::path& path) {
  struct stat open {
  }, there{};
  return ::fstat(folder.get(), &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return environment_error("temporary folder: {}", error.message());
  while (true) {
    std::string path = parent / fmt::format("{}{}", prefix, kRandomLetters);
    if (!::mkdtemp(path.data())) {
      return environment_error("{}: expected to make a folder there, found: {}", parent.string(),
                               std::strerror(errno));
    }
    // Until it is locked, it looks left to others: they may remove it.
    Descriptor lock = open_folder(path);
    if (!lock.ok() && errno != ENOENT) {
      const int why = errno;
      ::rmdir(path.c_str());
      return environment_error("{}: expected to open it, found: {}", path, std::strerror(why));
    }
    const bool others = ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (lock.ok() && !others && is_at(lock, path)) return TemporaryFolder(path, std::move(lock));
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

bool is_temporary_name(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() == prefix.size() + kRandomLetters.size();
}

Descriptor lock_left_folder(const fs::path& path) {
  Descriptor folder = open_folder(path);
  struct stat about {};
  if (!folder.ok() || ::fstat(folder.get(), &about) != 0 || about.st_uid != ::geteuid()) return {};
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return folder;
}

void remove_left_folders(std::string_view prefix) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    if (!is_temporary_name(at->path().filename().string(), prefix)) continue;
    const Descriptor lock = lock_left_folder(at->path());
    std::error_code ignored;
    if (lock.ok()) fs::remove_all(at->path(), ignored);
  }
}

}  // namespace assay
