// A folder that is gone when it is no longer needed, if need be by the next process.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/files/descriptor.h"
#include "base/result.h"

namespace assay {

// It lies below the system's temporary folder ($TMPDIR), mode 0700, and is removed with all it
// holds by the destructor. It is locked (flock) while the process lives, so that others can tell if
// it is still in use.
class TemporaryFolder {
 public:
  // Its name is `prefix` and six more letters. environment_error: no temporary folder, or no room
  // there.
  static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    return *this;
  }
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  Descriptor lock_;
};

// True if make(prefix) gives a folder such a name.
bool is_temporary_name(std::string_view name, std::string_view prefix);
// The lock of a temporary folder whose process was killed. Not ok(): it is in use, another user's,
// or not there, which may mean that it lies in another container.
Descriptor lock_left_folder(const std::filesystem::path& folder);
// Removes the folders of make(prefix) whose processes were killed. One that can't be removed stays.
void remove_left_folders(std::string_view prefix);

}  // namespace assay
