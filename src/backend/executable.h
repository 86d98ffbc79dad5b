// A program that an arm names: where it is, and its bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/records/json.h"

namespace assay {

// The program that argv's first word names when it is started in this folder: a path as such, a
// name as it is.
std::string program_in(const std::string& name, const std::filesystem::path& folder);

// The file that starts under this name: a path, relative to `folder` unless that is empty, or a
// name that is looked up in PATH. Absent: there is none that can be executed.
std::optional<std::filesystem::path> find_executable(const std::string& name,
                                                     const std::filesystem::path& folder);

// {"path", "sha256"}; the hash is null if the file can't be read.
Json hashed_file(const std::filesystem::path& path);

}  // namespace assay
