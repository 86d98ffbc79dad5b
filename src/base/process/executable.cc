#include "base/process/executable.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text/text.h"

namespace assay {
namespace {

// A folder may be entered, which access() takes for the right to execute it.
std::optional<std::filesystem::path> executable_at(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || ::access(path.c_str(), X_OK) != 0) {
    return std::nullopt;
  }
  return path;
}

}  // namespace

std::string program_in(const std::string& name, const std::filesystem::path& folder) {
  if (folder.empty() || name.find('/') == std::string::npos) return name;
  return std::filesystem::absolute(folder / name).lexically_normal().string();
}

std::optional<std::filesystem::path> find_executable(const std::string& name,
                                                     const std::filesystem::path& folder) {
  const std::string program = program_in(name, folder);
  if (program.find('/') != std::string::npos) return executable_at(program);
  if (program.empty()) return std::nullopt;
  const char* const path = std::getenv("PATH");
  for (const std::string& place : split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    if (auto found = executable_at(std::filesystem::path(place.empty() ? "." : place) / program))
      return found;
  }
  return std::nullopt;
}

}  // namespace assay
