// A folder that is gone when it is no longer needed.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace assay {

// Below the system's temporary folder ($TMPDIR), mode 0700; removed with all it holds by the
// destructor.
class TemporaryFolder {
 public:
  // Its name begins with `prefix`. environment_error: no temporary folder, or no room there.
  static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace assay
