// Looks at the place before anything is made there.
#include "artifact/new_bundle.h"

#include "artifact/manifest.h"

namespace assay {

namespace fs = std::filesystem;

Status check_is_in_no_bundle(const fs::path& folder) {
  const auto around = bundle_around(folder);
  if (!around) return {};
  return bad_input("{}: expected a folder outside of any bundle, found it in {}", folder.string(),
                   around->string());
}

Status check_new_bundle(const fs::path& folder) {
  ASSAY_CHECK(check_is_in_no_bundle(folder));
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    return bad_input("{}: expected a new folder, found a file", folder.string());
  }
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error)) {
    return bad_input("{}: expected a new or empty folder, found files in it{}", folder.string(),
                     fs::exists(fs::symlink_status(folder / kManifestName, error))
                         ? " (a bundle exists already; --resume continues an unfinished one)"
                         : "");
  }
  return {};
}

}  // namespace assay
