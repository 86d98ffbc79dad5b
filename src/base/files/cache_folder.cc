// The XDG base directory specification's rules for a cache folder.
#include "base/files/cache_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace assay {

std::filesystem::path cache_folder(const char* variable, const std::string& name) {
  namespace fs = std::filesystem;
  if (const char* folder = std::getenv(variable); folder && *folder) return folder;
  const fs::path below = fs::path("assay") / name;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return cache / below;  // its specification: relative ones don't count
  const char* home = std::getenv("HOME");
  if (home && *home) return home / (".cache" / below);
  const passwd* user = ::getpwuid(::geteuid());
  if (user && user->pw_dir && *user->pw_dir) return user->pw_dir / (".cache" / below);
  return {};
}

}  // namespace assay
