// mkdtemp and remove_all.
#include "base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace assay {

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) return environment_error("temporary folder: {}", error.message());
  std::string path = parent / fmt::format("{}XXXXXX", prefix);
  if (!::mkdtemp(path.data())) {
    return environment_error("{}: expected to make a folder there, found: {}", parent.string(),
                             std::strerror(errno));
  }
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace assay
