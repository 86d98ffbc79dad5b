// The shared libraries that are loaded into this process, as files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"

namespace assay {

struct LoadedLibrary {
  std::string name;                    // "libdnnl.so.2", as it was asked for
  std::filesystem::path path;          // of the file itself, links resolved
  std::optional<std::string> version;  // from the file's name, where it has one: "2.7"
  std::optional<std::string> sha256;   // absent if the file can't be read (any more)
};

// In the order of loading; one without a file (the vDSO) is left out. Reads every file: about 0.1
// s.
std::vector<LoadedLibrary> loaded_libraries();
Json libraries_to_json(const std::vector<LoadedLibrary>& libraries);

// "libdnnl.so.2.7" to 2.7, "ld-2.31.so" to 2.31; absent for "libc.so".
std::optional<std::string> library_version(const std::string& file_name);

// Hash of the running program's own file.
std::optional<std::string> program_sha256();

}  // namespace assay
