// Imports a file into a folder that is gone once the bundle has been read.
#include "cli/bundles/result_files.h"

#include <stdlib.h>

#include <filesystem>

#include "base/clock.h"
#include "base/files/folder.h"
#include "import/import.h"
#include "import/import_bundle.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

class ImportFolder {
 public:
  ImportFolder() = default;
  ImportFolder(const ImportFolder&) = delete;
  ImportFolder& operator=(const ImportFolder&) = delete;
  ~ImportFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  Result<fs::path> make() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "assay-import-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
      return bad_input("{}: expected a folder for temporary files, found none that can be written",
                       pattern);
    }
    path_ = pattern;
    return path_;
  }

 private:
  fs::path path_;
};

}  // namespace

Result<Bundle> read_bundle_or_results(const std::string& path) {
  std::error_code absent;
  const bool is_file = fs::is_regular_file(path, absent);
  if (!is_file && fs::exists(fs::path(path) / "manifest.json", absent)) return read_bundle(path);
  ImportRequest request;
  request.files = {path};
  const Result<Imported> imported = read_imported(request);
  if (!imported && !is_file) return read_bundle(path);  // which says what a bundle has
  if (!imported) return std::unexpected(imported.error());
  ImportFolder scratch;
  ASSAY_TRY(const fs::path folder, scratch.make());
  const ImportOptions options{.name = {},
                              .baseline = {},
                              .assay_version = ASSAY_VERSION,
                              .now_ns = system_clock().wall_ns()};
  ASSAY_CHECK(write_imported(*imported, options, disk(), folder / "bundle"));
  ASSAY_TRY(Bundle bundle, read_bundle(folder / "bundle"));
  bundle.folder = path;
  return bundle;
}

}  // namespace assay::cli
