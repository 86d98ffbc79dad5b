// Folders named twice.
#include "artifact/each_once.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "base/text.h"

namespace assay {

Status check_each_once(std::string_view command, std::span<const std::string> folders) {
  std::set<std::filesystem::path> seen;
  for (const std::string& folder : folders) {
    std::error_code unreadable;
    std::filesystem::path path = std::filesystem::weakly_canonical(folder, unreadable);
    if (unreadable) path = std::filesystem::path(folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // "folder/"
    if (!seen.insert(path).second) {
      return bad_input("{}: expected each bundle once, found {} twice", command,
                       quoted_excerpt(folder));
    }
  }
  return {};
}

}  // namespace assay
