// A private folder for the files of one compilation.
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"

namespace assay::engine {

// A folder below the system's temporary one ($TMPDIR), mode 0700; removed with all it holds by the
// destructor. It isn't in the kernel cache: that may be full or read-only, and kernels must be
// built all the same.
class BuildFolder {
 public:
  // Older folders of killed processes are removed when a new one is made.
  static constexpr int64_t kLeftoverAgeS = 3600;

  static Result<BuildFolder> make();
  BuildFolder(BuildFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  BuildFolder& operator=(BuildFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~BuildFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit BuildFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace assay::engine
