// Programs as execvp() looks for them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace assay {

// The program that argv's first word names when it is started in this folder: a path as such, a
// name as it is.
std::string program_in(const std::string& name, const std::filesystem::path& folder);

// The file that starts under this name: a path, relative to `folder` unless that is empty, or a
// name that is looked up in PATH. Absent: there is no regular file that can be executed.
std::optional<std::filesystem::path> find_executable(const std::string& name,
                                                     const std::filesystem::path& folder = {});

}  // namespace assay
