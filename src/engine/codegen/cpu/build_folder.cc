// A private folder for the files of one compilation.
#include "engine/codegen/cpu/build_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "assay-build-";

void remove_leftovers(const fs::path& parent) {
  std::error_code error;
  fs::directory_iterator files(parent, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    struct stat info {};
    if (!files->path().filename().string().starts_with(kPrefix) ||
        ::lstat(files->path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
        info.st_uid != ::geteuid() ||
        ::time(nullptr) - info.st_mtime < BuildFolder::kLeftoverAgeS) {
      continue;
    }
    std::error_code ignored;  // another process may be at it too
    fs::remove_all(files->path(), ignored);
  }
}

}  // namespace

Result<BuildFolder> BuildFolder::make() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return environment_error("temporary folder: {}", error.message());
  remove_leftovers(parent);
  std::string path = parent / fmt::format("{}XXXXXX", kPrefix);
  if (!::mkdtemp(path.data())) {
    return environment_error("{}: expected to make a folder for compiling there, found: {}",
                             parent.string(), std::strerror(errno));
  }
  return BuildFolder(path);
}

BuildFolder::~BuildFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace assay::engine
