// The shared libraries that are loaded into this process, from the dynamic loader.
#include "identity/libraries.h"

#include <link.h>

#include "base/files/hash.h"

namespace assay {
namespace {

int collect_name(dl_phdr_info* info, size_t, void* names) {
  if (info->dlpi_name && *info->dlpi_name == '/') {
    static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  }
  return 0;
}

std::optional<std::string> file_hash(const std::filesystem::path& path) {
  const Result<std::string> hash = sha256_file_hex(path);
  return hash ? std::optional(*hash) : std::nullopt;
}

}  // namespace

std::optional<std::string> library_version(const std::string& file_name) {
  const size_t so = file_name.find(".so");
  if (so == std::string::npos) return std::nullopt;
  const auto is_version = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  };
  const std::string after = so + 4 < file_name.size() ? file_name.substr(so + 4) : "";
  if (is_version(after)) return after;
  const size_t dash = file_name.rfind('-', so);
  if (dash == std::string::npos) return std::nullopt;
  const std::string before = file_name.substr(dash + 1, so - dash - 1);
  return is_version(before) ? std::optional(before) : std::nullopt;
}

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(collect_name, &names);
  std::vector<LoadedLibrary> libraries;
  for (const std::string& name : names) {
    std::error_code error;
    std::filesystem::path path = std::filesystem::canonical(name, error);
    if (error) path = name;
    libraries.push_back({.name = std::filesystem::path(name).filename().string(),
                         .path = path,
                         .version = library_version(path.filename().string()),
                         .sha256 = file_hash(path)});
  }
  return libraries;
}

Json libraries_to_json(const std::vector<LoadedLibrary>& libraries) {
  Json array = Json::array();
  for (const LoadedLibrary& library : libraries) {
    Json json = {{"name", library.name}, {"path", library.path.string()}};
    if (library.version) json["version"] = *library.version;
    if (library.sha256) json["sha256"] = *library.sha256;
    array.push_back(std::move(json));
  }
  return array;
}

std::optional<std::string> program_sha256() {
  return file_hash("/proc/self/exe");
}

}  // namespace assay
