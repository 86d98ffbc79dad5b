// Programs as execvp() looks for them.
#include "backend/executable.h"

#include <unistd.h>

#include <cstdlib>

#include "base/files/hash.h"
#include "base/text/text.h"

namespace assay {
namespace {

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
  const char* const path = std::getenv("PATH");
  for (const std::string& place : split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    if (auto found = executable_at(std::filesystem::path(place) / name)) return found;
  }
  return std::nullopt;
}

Json hashed_file(const std::filesystem::path& path) {
  Json json = {{"path", path.string()}};
  const auto hash = sha256_file_hex(path);
  json["sha256"] = hash ? Json(*hash) : Json(nullptr);
  return json;
}

}  // namespace assay
